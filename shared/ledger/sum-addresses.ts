import type { RequestLogDocument } from './ledger-store.ts';

/** What a row of the request log says of the address that it came from. */
export type AddressedRow = Pick<RequestLogDocument, 'userIp' | 'at' | 'costNano' | 'success' | 'lines'>;
export const addressFields = { userIp: 1, at: 1, costNano: 1, success: 1, lines: 1 } as const;

export interface AddressSums {
  readonly address: string;
  readonly requests: number;
  readonly failed: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
  readonly costNano: bigint;
}

/** Sums requests by the address of their callers. @returns those with the most requests first. Pure. */
export function sumAddresses(rows: readonly AddressedRow[]): AddressSums[] {
  const sums = new Map<string, AddressSums>();
  for (const { userIp: address, at, costNano, success, lines = 1 } of rows) {
    const known = sums.get(address);
    sums.set(address, {
      address,
      requests: (known?.requests ?? 0) + lines,
      failed: (known?.failed ?? 0) + (success ? 0 : lines),
      firstAt: known !== undefined && known.firstAt < at ? known.firstAt : at,
      lastAt: known !== undefined && known.lastAt > at ? known.lastAt : at,
      costNano: (known?.costNano ?? 0n) + costNano,
    });
  }
  return [...sums.values()].sort((one, other) => other.requests - one.requests);
}

import type { LedgerEntry, RefillEvent } from './usage-event.ts';

/** What the ledger remembers of a credit with an Idempotency-Key: what was requested, and the operator's note. */
export interface RequestedCredit {
  readonly requestedNano?: bigint;
  readonly requestedFree?: number;
  readonly note?: string;
}

/** One refill; kept forever. `_id` is the refill's id. */
export interface RefillLogDocument {
  readonly _id: string;
  readonly accountId: string;
  readonly at: Date;
  /** Numbers the account's refills from 1, without gaps. Earlier releases numbered only redeemed codes. */
  readonly ordinal: number;
  /** Empty for a refill without a code. */
  readonly code: string;
  /** Negative for a correction that took money. */
  readonly amountNano: bigint;
  readonly freeRequests: number;
  /** Absent in rows of earlier releases, which are all of codes. */
  readonly source?: RefillEvent['source'];
  readonly note?: string;
  /** The name of the operator's token. Absent in rows of earlier releases. */
  readonly token?: string;
}

/** Where refills come from, as it is shown. */
export const refillSources = ['operator', 'code', 'signup'] as const;
export type RefillSource = (typeof refillSources)[number];

const sources: Readonly<Record<RefillEvent['source'], RefillSource>> = {
  code: 'code',
  signup: 'signup',
  admin: 'operator',
  demo: 'operator',
  test: 'operator',
};

export const sourceOf = ({ source = 'code' }: Pick<RefillLogDocument, 'source'>): RefillSource =>
  sources[source];

/** Reads where a refill of an event came from. Returns null if the event does not say it. */
export const readSource = (source: unknown): RefillSource | null =>
  typeof source === 'string' && Object.hasOwn(sources, source)
    ? sources[source as RefillEvent['source']]
    : null;

/** What the ledger remembers of a credit with an Idempotency-Key. */
export function describeCredit({ requestedNano, requestedFree, note }: RefillEvent): RequestedCredit {
  if (requestedNano === undefined || requestedFree === undefined) return {};
  return { requestedNano: BigInt(requestedNano), requestedFree, ...(note !== undefined && { note }) };
}

/** The row of a refill in the refill log; null if it has none. */
export function toRefillLog(entry: LedgerEntry & { kind: 'refill' }): RefillLogDocument | null {
  const { refillId, accountId, at, code, source, note, token } = entry.event;
  if (entry.ordinal === null) return null;
  const { ordinal, amountNano, freeRequests } = entry;
  return {
    _id: refillId,
    accountId,
    at: new Date(at),
    ordinal,
    code: code ?? '',
    amountNano,
    freeRequests,
    source,
    ...(note !== undefined && { note }),
    ...(token !== undefined && { token }),
  };
}

import type { Schema } from '../../admin/api.ts';
import { toNano } from '../../lib/nano.ts';
import { readAmount } from '../../lib/read-amount.ts';
import { fromZoned } from '../../lib/zoned-time.ts';

export type AskedCodes = Required<Schema<'CreateCodesRequest'>>;

/** What is typed in the form. */
export interface CodesDraft {
  readonly count: string;
  readonly balance: string;
  readonly freeRequests: string;
  /** `2026-12-31`; empty for no expiry. */
  readonly expires: string;
}

export const emptyDraft: CodesDraft = { count: '1', balance: '', freeRequests: '', expires: '' };

type Fault = 'countWrong' | 'balanceWrong' | 'freeRequestsWrong' | 'noValue' | 'expiresPast';

const maxCount = 1_000;
const maxRoubles = 9_000_000;
const maxFreeRequests = 1_000_000_000;

/** Returns a whole number, or null if it is none or above the maximum. Empty is 0. */
function readWhole(text: string, max: number): number | null {
  const clean = text.replaceAll(/\s/g, '');
  if (!/^\d{0,10}$/.test(clean)) return null;
  const value = Number(clean);
  return value <= max ? value : null;
}

function readBalance(text: string): string | null {
  const amount = text.trim() === '' ? '0' : readAmount(text);
  return amount !== null && Number(amount) <= maxRoubles ? amount : null;
}

/** What the codes are worth together; null while something is missing or wrong. */
export function sumUp(draft: CodesDraft): { count: number; nano: bigint; freeRequests: number } | null {
  const count = readWhole(draft.count, maxCount);
  const balance = readBalance(draft.balance);
  const free = readWhole(draft.freeRequests, maxFreeRequests);
  if (count === null || balance === null || free === null || count === 0) return null;
  const nano = toNano(balance);
  if (nano === 0n && free === 0) return null;
  return { count, nano: nano * BigInt(count), freeRequests: free * count };
}

/** Finds what is wrong, by field. */
export function checkDraft(draft: CodesDraft): Partial<Record<keyof CodesDraft, Fault>> {
  const count = readWhole(draft.count, maxCount);
  const balance = readBalance(draft.balance);
  const free = readWhole(draft.freeRequests, maxFreeRequests);
  const isWorthless = balance !== null && free !== null && toNano(balance) === 0n && free === 0;
  const isPast = draft.expires !== '' && Date.parse(`${draft.expires}T23:59:59`) < Date.now();
  return {
    ...(count === null || count === 0 ? { count: 'countWrong' as const } : {}),
    ...(balance === null ? { balance: 'balanceWrong' as const } : {}),
    ...(isWorthless ? { balance: 'noValue' as const } : {}),
    ...(free === null ? { freeRequests: 'freeRequestsWrong' as const } : {}),
    ...(isPast ? { expires: 'expiresPast' as const } : {}),
  };
}

/** @param draft in which nothing is wrong */
export function readDraft(draft: CodesDraft, timeZone: string): AskedCodes {
  const { count, balance, freeRequests, expires } = draft;
  return {
    count: readWhole(count, maxCount)!,
    balance: Number(readBalance(balance)!),
    free_requests: readWhole(freeRequests, maxFreeRequests)!,
    expires_at: expires === '' ? null : fromZoned(`${expires}T23:59`, timeZone),
  };
}

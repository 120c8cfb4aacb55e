import { shareExactly } from './share-exactly.ts';

/** What a vendor may count above our own count of an input: special tokens around it, and a difference of vocabularies. */
const slackTokens = 2;
const slackPermille = 100;

/** What each input of a call is billed. */
export interface CallBill {
  /** By input, in order. */
  readonly tokens: readonly number[];
  /** Whether the tokens are our own count: the vendor reported none, or more or fewer than can be shared. */
  readonly isCounted: boolean;
  /** Our own count of the whole call. */
  readonly ownSum: number;
  /** Whether the vendor's count is near ours; null where it reported none. */
  readonly agrees: boolean | null;
}

/** Most tokens that an input is billed above our own count of it because of the inputs that it shares a call with. */
export function findSlack(ownTokens: number): number {
  return slackTokens + Math.floor((ownTokens * slackPermille) / 1_000);
}

/**
 * Shares what a vendor reported for a call over its inputs. A vendor reports one sum for a call, so where several accounts
 * share it, nobody can tell whose input was counted how. A sum that is near our own count is shared so that no input is
 * billed more than its slack above its own count; at any other sum everybody is billed by our own count, and the
 * difference is the operator's. One account alone pays what the vendor reported.
 * @param inputs with their tokens by our own count, in order
 */
export function billCall(
  inputs: readonly { readonly accountId: string; readonly tokens: number }[],
  reported: number | null,
): CallBill {
  const own = inputs.map(({ tokens }) => tokens);
  const ownSum = sum(own);
  if (reported === null) return { tokens: own, isCounted: true, ownSum, agrees: null };
  const slacks = own.map(findSlack);
  const excess = reported - ownSum;
  const agrees = Math.abs(excess) <= sum(slacks);
  const isOfOne = inputs.every(({ accountId }) => accountId === inputs[0]!.accountId);
  if (!agrees && !isOfOne) return { tokens: own, isCounted: true, ownSum, agrees };
  if (isOfOne || excess <= 0)
    return { tokens: shareExactly(reported, own), isCounted: false, ownSum, agrees };
  // The slacks are whole numbers whose sum is at least the excess, so no share of it is above its slack.
  const excesses = shareExactly(excess, slacks);
  return { tokens: own.map((tokens, i) => tokens + excesses[i]!), isCounted: false, ownSum, agrees };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

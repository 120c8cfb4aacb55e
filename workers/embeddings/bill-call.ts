import { shareExactly } from './share-exactly.ts';

/** What a vocabulary of the vendor's may count more, or fewer, than ours for ordinary texts. */
const slackPermille = 100;

/** A short text that counts a token or two otherwise is no sign of a vendor that counts its sender otherwise. */
const roundingTokens = 2;

/** An input of a call, with its tokens by our own count, special tokens included. */
export interface CountedInput {
  readonly accountId: string;
  readonly tokens: number;
}

/** What each input of a call is billed, and what its count says of the accounts. */
export interface CallBill {
  /** By input, in order. */
  readonly tokens: readonly number[];
  /** Whether the tokens are our own count: the vendor reported none, or 0, or more or fewer than can be shared. */
  readonly isCounted: boolean;
  /** Our own count of the whole call. */
  readonly ownSum: number;
  /** Whether the vendor's count is near ours; null where it reported none. */
  readonly agrees: boolean | null;
  /** What the vendor counted above our own count, where it agrees with it. */
  readonly excess: number;
}

/** Most tokens that an account is billed above our own count of its inputs of a call because of its neighbours. */
export function findSlack(ownTokens: number): number {
  return Math.floor((ownTokens * slackPermille) / 1_000);
}

/** How far the vendor's count of a call may be from ours without a doubt about its accounts. */
export function findTolerance(ownTokens: number, accounts: number): number {
  return findSlack(ownTokens) + roundingTokens * accounts;
}

/**
 * Shares what a vendor reported for a call over its inputs. A vendor reports one sum for a call, so where several accounts
 * share it, nobody can tell whose input was counted how. An excess over our own count is shared where no account is billed
 * more than its slack for it; any other is the operator's, as is a count that is not near ours, and everybody is billed by
 * our own count. One account alone pays what the vendor reported.
 * @param inputs in order
 */
export function billCall(inputs: readonly CountedInput[], reported: number | null): CallBill {
  const own = inputs.map(({ tokens }) => tokens);
  const ownSum = sum(own);
  // Something was sent: no tokens are no count of it.
  if (reported === null || reported === 0)
    return { tokens: own, isCounted: true, ownSum, agrees: null, excess: 0 };
  const ofAccounts = groupByAccount(inputs);
  const difference = reported - ownSum;
  const agrees = Math.abs(difference) <= findTolerance(ownSum, ofAccounts.length);
  const excess = agrees ? Math.max(0, difference) : 0;
  const told = { ownSum, agrees, excess };
  if (ofAccounts.length === 1 || (agrees && difference <= 0)) {
    return { tokens: shareExactly(reported, own), isCounted: false, ...told };
  }
  const shared = agrees ? shareExcess(own, ofAccounts, difference) : null;
  return { tokens: shared ?? own, isCounted: shared === null, ...told };
}

/** Null where it is more than the slacks of all accounts. */
function shareExcess(
  own: readonly number[],
  ofAccounts: readonly (readonly number[])[],
  excess: number,
): number[] | null {
  const slacks = ofAccounts.map((places) => findSlack(sum(places.map((place) => own[place]!))));
  if (excess > sum(slacks)) return null;
  const tokens = [...own];
  // The slacks are whole numbers whose sum is at least the excess, so no share of it is above its slack.
  for (const [i, share] of shareExactly(excess, slacks).entries()) {
    const places = ofAccounts[i]!;
    const shares = shareExactly(
      share,
      places.map((place) => own[place]!),
    );
    for (const [j, place] of places.entries()) tokens[place]! += shares[j]!;
  }
  return tokens;
}

/** The places of each account's inputs. */
function groupByAccount(inputs: readonly CountedInput[]): number[][] {
  const places = new Map<string, number[]>();
  for (const [i, { accountId }] of inputs.entries()) {
    const ofAccount = places.get(accountId);
    if (ofAccount === undefined) places.set(accountId, [i]);
    else ofAccount.push(i);
  }
  return [...places.values()];
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

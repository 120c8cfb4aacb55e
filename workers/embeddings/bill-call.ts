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

/** What each input is billed. */
export interface InputBills {
  /** By input, in order. */
  readonly tokens: readonly number[];
  /** Whether the tokens are our own count: the vendor reported none, or 0, or more or fewer than can be shared. */
  readonly isCounted: boolean;
}

/** What each input of a call is billed, and what its count says of the accounts. */
export interface CallBill extends InputBills {
  /** What each is billed when it is asked for again, and its vector was kept: by then its neighbours are others, or none. */
  readonly kept: InputBills;
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
 * our own count. One account alone pays what the vendor reported; what that is too far above our own count may all be of
 * one of several inputs, so the others are not kept with a share of it.
 * @param inputs in order
 */
export function billCall(inputs: readonly CountedInput[], reported: number | null): CallBill {
  const own = inputs.map(({ tokens }) => tokens);
  const counted: InputBills = { tokens: own, isCounted: true };
  const ownSum = sum(own);
  // Something was sent: no tokens are no count of it.
  if (reported === null || reported === 0)
    return { ...counted, kept: counted, ownSum, agrees: null, excess: 0 };
  const ofAccounts = groupByAccount(inputs);
  const difference = reported - ownSum;
  const agrees = Math.abs(difference) <= findTolerance(ownSum, ofAccounts.length);
  const shared = shareReport(own, ofAccounts, reported, agrees);
  const bills = shared === null ? counted : { tokens: shared, isCounted: false };
  const isDoubtful = !agrees && difference > 0 && inputs.length > 1;
  return {
    ...bills,
    kept: isDoubtful ? counted : bills,
    ownSum,
    agrees,
    excess: agrees ? Math.max(0, difference) : 0,
  };
}

/** Null where it cannot be shared. */
function shareReport(
  own: readonly number[],
  ofAccounts: readonly (readonly number[])[],
  reported: number,
  agrees: boolean,
): number[] | null {
  const excess = reported - sum(own);
  if (ofAccounts.length === 1 || (agrees && excess <= 0)) return shareExactly(reported, own);
  return agrees ? shareExcess(own, ofAccounts, excess) : null;
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

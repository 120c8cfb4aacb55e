import { shareExactly } from './share-exactly.ts';

/** How much more or less than ours a vendor's tokenizer may count for ordinary texts. */
const slackPermille = 100;

/**
 * Allows for rounding: a token or two of difference in a short text does not mean that the vendor counts this
 * account's texts differently.
 */
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

/** What each input of a call is billed, and what the count of the call says about the accounts. */
export interface CallBill extends InputBills {
  /**
   * What each input is billed when it is requested again and served from the cache. It then has other
   * neighbours in the call, or none.
   */
  readonly kept: InputBills;
  /** Our own count of the whole call. */
  readonly ownSum: number;
  /** Whether the vendor's count is near ours; null if it reported none. */
  readonly agrees: boolean | null;
  /** What the vendor counted above our own count, if the two agree. */
  readonly excess: number;
}

/**
 * The most tokens that an account is billed above our own count of its inputs in a call because of its
 * neighbours.
 */
export function findSlack(ownTokens: number): number {
  return Math.floor((ownTokens * slackPermille) / 1_000);
}

/** How far the vendor's count of a call may be from ours without casting doubt on its accounts. */
export function findTolerance(ownTokens: number, accounts: number): number {
  return findSlack(ownTokens) + roundingTokens * accounts;
}

/**
 * Shares the tokens that a vendor reported for a call over its inputs. The vendor reports one sum per call, so
 * in a call shared by several accounts the count of each input is unknown. An excess over our own count is
 * shared if no account is billed more than its slack for it. The operator bears any larger excess, and any
 * count that is not near ours; then all accounts are billed by our own count. A single account pays what the
 * vendor reported. If that is too far above our own count, it may all be due to one of several inputs, so the
 * other inputs are not cached with a share of it.
 * @param inputs in order
 */
export function billCall(inputs: readonly CountedInput[], reported: number | null): CallBill {
  const own = inputs.map(({ tokens }) => tokens);
  const counted: InputBills = { tokens: own, isCounted: true };
  const ownSum = sum(own);
  // Inputs were sent, so 0 tokens cannot be a count of them.
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

/** Returns null if the report cannot be shared. */
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

/** Returns null if the excess is more than the slacks of all accounts. */
function shareExcess(
  own: readonly number[],
  ofAccounts: readonly (readonly number[])[],
  excess: number,
): number[] | null {
  const slacks = ofAccounts.map((places) => findSlack(sum(places.map((place) => own[place]!))));
  if (excess > sum(slacks)) return null;
  const tokens = [...own];
  // The slacks are integers whose sum is at least the excess, so no share exceeds its slack.
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

/** Returns the indices of each account's inputs. */
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

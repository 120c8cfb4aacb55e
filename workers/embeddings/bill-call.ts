// decisions 0022, 0026, 0027
import { shareExactly } from './share-exactly.ts';

/** How far a vendor's token count of ordinary texts may deviate from ours, in thousandths. */
const slackPermille = 100;

/**
 * Added to the tolerance per account, for rounding: a token or two of difference in a short text does not mean that the
 * vendor counts this account's texts differently.
 */
const roundingTokens = 2;

/** An input of a call with our own count of its tokens, including special tokens. */
export interface CountedInput {
  readonly accountId: string;
  readonly tokens: number;
}

/** The tokens billed for each input. */
export interface InputBills {
  /** One per input, in order. */
  readonly tokens: readonly number[];
  /** Whether the tokens are our own count, because the vendor reported none, 0, or a sum that cannot be split. */
  readonly isCounted: boolean;
}

/** The tokens billed for each input of a call, and what the vendor's count shows about the accounts. */
export interface CallBill extends InputBills {
  /**
   * The tokens billed for each input when it is requested again and served from the cache, without the
   * other inputs of this call.
   */
  readonly kept: InputBills;
  /** Our own count of the whole call. */
  readonly countedSum: number;
  /** Whether the vendor's count is near ours; null if it reported none. */
  readonly agrees: boolean | null;
  /** The vendor's count minus our own count if the vendor's is higher and the two agree; otherwise 0. */
  readonly excess: number;
}

/**
 * Returns the maximum number of tokens by which an account's bill may exceed our own count of its inputs because of
 * other accounts' inputs in the call.
 */
export function findSlack(ownTokens: number): number {
  return Math.floor((ownTokens * slackPermille) / 1_000);
}

/** Returns how far the vendor's count of a call may deviate from ours before its accounts are quarantined. */
export function findTolerance(ownTokens: number, accounts: number): number {
  return findSlack(ownTokens) + roundingTokens * accounts;
}

/**
 * Splits the tokens that a vendor reported for a call among its inputs. The vendor reports one sum per call, so in a
 * call shared by several accounts the token count of each input is unknown. If the sum exceeds our own count, the
 * excess is split among the accounts, each up to its slack. If it exceeds all slacks together, or if the sum is not
 * near our own count, all accounts are billed according to our own count, and the operator bears the difference. If all
 * inputs belong to one account, it is billed what the vendor reported. If that is far above our own count, a single
 * input may have caused the whole excess, so the inputs are cached with our own counts instead.
 * @param inputs in order
 */
export function billCall(inputs: readonly CountedInput[], reported: number | null): CallBill {
  const ownCounts = inputs.map(({ tokens }) => tokens);
  const ownBills: InputBills = { tokens: ownCounts, isCounted: true };
  const countedSum = sum(ownCounts);
  // Inputs were sent, so a report of 0 tokens is wrong.
  if (reported === null || reported === 0)
    return { ...ownBills, kept: ownBills, countedSum, agrees: null, excess: 0 };
  const indicesByAccount = groupByAccount(inputs);
  const difference = reported - countedSum;
  const agrees = Math.abs(difference) <= findTolerance(countedSum, indicesByAccount.length);
  const splitTokens = splitReport(ownCounts, indicesByAccount, reported, agrees);
  const bills = splitTokens === null ? ownBills : { tokens: splitTokens, isCounted: false };
  const hasSuspiciousExcess = !agrees && difference > 0 && inputs.length > 1;
  return {
    ...bills,
    kept: hasSuspiciousExcess ? ownBills : bills,
    countedSum,
    agrees,
    excess: agrees ? Math.max(0, difference) : 0,
  };
}

/** Returns null if the reported tokens cannot be split fairly. */
function splitReport(
  ownCounts: readonly number[],
  indicesByAccount: readonly (readonly number[])[],
  reported: number,
  agrees: boolean,
): number[] | null {
  const excess = reported - sum(ownCounts);
  if (indicesByAccount.length === 1 || (agrees && excess <= 0)) return shareExactly(reported, ownCounts);
  return agrees ? splitExcess(ownCounts, indicesByAccount, excess) : null;
}

/** Returns null if the excess is more than the slack of all accounts together. */
function splitExcess(
  ownCounts: readonly number[],
  indicesByAccount: readonly (readonly number[])[],
  excess: number,
): number[] | null {
  const slacks = indicesByAccount.map((indices) => findSlack(sum(indices.map((index) => ownCounts[index]!))));
  if (excess > sum(slacks)) return null;
  const tokens = [...ownCounts];
  // The slacks are integers whose sum is at least the excess, so no share exceeds its slack.
  for (const [i, share] of shareExactly(excess, slacks).entries()) {
    const indices = indicesByAccount[i]!;
    const shares = shareExactly(
      share,
      indices.map((index) => ownCounts[index]!),
    );
    for (const [j, index] of indices.entries()) tokens[index]! += shares[j]!;
  }
  return tokens;
}

/** Returns the indices of each account's inputs. */
function groupByAccount(inputs: readonly CountedInput[]): number[][] {
  const byAccount = new Map<string, number[]>();
  for (const [i, { accountId }] of inputs.entries()) {
    const indices = byAccount.get(accountId);
    if (indices === undefined) byAccount.set(accountId, [i]);
    else indices.push(i);
  }
  return [...byAccount.values()];
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

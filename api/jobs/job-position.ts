// decision 0052
import { turnCost } from '../../shared/work/jobs/job-line.ts';
import type { JobOutlook, WaitingAccount } from '../../shared/work/jobs/job-outlook.ts';
import { countFirst, PrefixCounts } from './prefix-counts.ts';

/** A point in the order of turns. Accounts with equal start tags are ordered by id, as Redis sorts them. */
interface Moment {
  readonly tag: number;
  readonly accountId: string;
}

/** Returns whether one moment is before the other. Both tags may be shifted by the same whole number of turns. */
const isBefore = (one: Moment, other: Moment): boolean =>
  one.tag < other.tag || (one.tag === other.tag && one.accountId < other.accountId);

/**
 * Accounts of one weight, whose turns all take the same virtual time (the cost). An account with start tag t and n jobs
 * has jobs at t, t + cost, … (n times): an endless sequence from t, minus an endless sequence from t + n × cost. Both
 * have the same remainder modulo the cost. If a moment falls into a turn of such a sequence, the remainders alone
 * decide whether the sequence's job in that turn is before the moment.
 */
class WeightClass {
  readonly #cost: number;
  readonly #remainders: readonly Moment[];
  readonly #starts: PrefixCounts;
  readonly #ends: PrefixCounts;

  constructor(weight: number, accounts: readonly WaitingAccount[]) {
    this.#cost = turnCost(weight);
    const cost = this.#cost;
    const sequences = accounts
      .map(({ accountId, startTag, waiting }) => {
        const turn = Math.floor(startTag / cost);
        return { remainder: { tag: startTag - turn * cost, accountId }, turn, waiting };
      })
      .sort((one, other) => (isBefore(one.remainder, other.remainder) ? -1 : 1));
    this.#remainders = sequences.map(({ remainder }) => remainder);
    this.#starts = new PrefixCounts(sequences.map(({ turn }) => turn));
    this.#ends = new PrefixCounts(sequences.map(({ turn, waiting }) => turn + waiting));
  }

  /** Counts the jobs of these accounts that start before the moment. */
  countBefore({ tag, accountId }: Moment): number {
    const turn = Math.floor(tag / this.#cost);
    const remainder = { tag: tag - turn * this.#cost, accountId };
    const before = countFirst(this.#remainders, (other) => isBefore(other, remainder));
    const count = (sequences: PrefixCounts): number =>
      sequences.sumBelow(turn) + sequences.countWithin(before, turn);
    return count(this.#starts) - count(this.#ends);
  }
}

interface PreparedLine {
  readonly accounts: ReadonlyMap<string, WaitingAccount>;
  readonly classes: readonly WeightClass[];
}

const prepared = new WeakMap<JobOutlook, PreparedLine>();

function prepare(outlook: JobOutlook): PreparedLine {
  const byWeight = new Map<number, WaitingAccount[]>();
  for (const account of outlook.accounts) {
    const sameWeight = byWeight.get(account.weight);
    if (sameWeight === undefined) byWeight.set(account.weight, [account]);
    else sameWeight.push(account);
  }
  return {
    accounts: new Map(outlook.accounts.map((account) => [account.accountId, account])),
    classes: [...byWeight].map(([weight, accounts]) => new WeightClass(weight, accounts)),
  };
}

/**
 * Estimates how many jobs of the queue start before an account's job if no more are added. An account missing from the
 * outlook is treated as one that starts to wait now. The first call for an outlook sorts its accounts. Later calls take
 * logarithmic time for each weight that occurs.
 * @param rank the job's index among the account's own jobs, starting at 0
 */
export function estimatePosition(outlook: JobOutlook, accountId: string, rank: number): number {
  let line = prepared.get(outlook);
  if (line === undefined) {
    line = prepare(outlook);
    prepared.set(outlook, line);
  }
  const existing = line.accounts.get(accountId);
  const moment: Moment = {
    tag: (existing?.startTag ?? outlook.virtualTime) + rank * turnCost(existing?.weight ?? 1),
    accountId,
  };
  const countedJobs = line.classes.reduce((sum, weightClass) => sum + weightClass.countBefore(moment), 0);
  // Add the account's jobs that the outlook does not include yet.
  return countedJobs + Math.max(0, rank - (existing?.waiting ?? 0));
}

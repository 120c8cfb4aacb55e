import { nameDay, parseDay, startOfPeriod, toDay, type HotBudget } from '../../accounts/budget-periods.ts';
import type { LedgerSums } from '../../ledger/ledger-store.ts';
import type { LedgerEntry } from '../../ledger/usage-event.ts';
import { formatRub } from '../../encoding/money.ts';
import type { Snapshot } from './snapshot.ts';

export interface Difference {
  readonly account: string;
  /** The property that is violated. */
  readonly check: string;
  readonly request_id: string | null;
  /** Roubles as a decimal number, or a count. */
  readonly expected: string;
  readonly found: string;
}

const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n);
const isCharge = (entry: LedgerEntry): boolean => entry.kind === 'charge';

/** What an entry adds to the balance. */
export const amountOf = (entry: LedgerEntry): bigint =>
  entry.kind === 'charge' ? -entry.costNano : entry.amountNano;

const freeRequestsOf = (entry: LedgerEntry): number => {
  if (entry.kind === 'refill') return entry.freeRequests;
  return entry.free ? -1 : 0;
};

/** Returns whether a day since 1970 is in the current period of a budget. */
function isInPeriod({ period, resetsAt }: HotBudget, day: number): boolean {
  const end = toDay(resetsAt.getTime());
  return day >= startOfPeriod(period, end - 1) && day < end;
}

/** What the ledger has for the current period of a budget. */
function sumSpent({ storedAccount, pending }: Snapshot, budget: HotBudget): bigint {
  const applied = Object.entries(storedAccount.spentByDay ?? {}).filter(([day]) =>
    isInPeriod(budget, parseDay(day)),
  );
  const charges = pending.flatMap((entry) =>
    entry.kind === 'charge' && isInPeriod(budget, parseDay(entry.day)) ? [entry] : [],
  );
  return sum(applied.map(([, spentNano]) => spentNano)) + sum(charges.map(({ costNano }) => costNano));
}

/** What requests and jobs that were admitted in the current period of a budget have reserved. */
function sumReserved({ reservations, jobs }: Snapshot, budget: HotBudget): bigint {
  const requests = reservations.filter(
    ({ free, admittedAtMs }) => !free && isInPeriod(budget, toDay(admittedAtMs)),
  );
  const ofJobs = [...jobs.byDay].filter(([day]) => isInPeriod(budget, day));
  return sum(requests.map(({ costNano }) => costNano)) + sum(ofJobs.map(([, nano]) => nano));
}

/**
 * Compares an account with the sum of its ledger entries. Pure.
 * @param ledger sums of the entries in MongoDB that are already applied to the account in MongoDB
 */
export function checkAccount(snapshot: Snapshot, ledger: LedgerSums): Difference[] {
  const { storedAccount: stored, hot, pending, reservations, jobs } = snapshot;
  const differences: Difference[] = [];
  const compare = (check: string, expected: string, found: string): void => {
    if (expected !== found)
      differences.push({ account: stored._id, check, request_id: null, expected, found });
  };
  const compareMoney = (check: string, expected: bigint, found: bigint): void =>
    compare(check, formatRub(expected), formatRub(found));
  const compareCount = (check: string, expected: number, found: number): void =>
    compare(check, String(expected), String(found));

  compareMoney('balance in MongoDB equals refills minus charges', ledger.amountNano, stored.balanceNano);
  compareMoney('refills in MongoDB', ledger.addedNano, stored.totalAddedNano);
  compareCount('free requests in MongoDB', ledger.freeRequests, stored.freeRequests);
  compareCount('charges in MongoDB', ledger.charges, stored.charges);
  if (hot === null) return differences;

  const added = pending.map(amountOf).filter((amount, i) => amount > 0n && !isCharge(pending[i]!));
  const free = pending.reduce((total, entry) => total + freeRequestsOf(entry), 0);
  compareMoney(
    'balance in Redis equals that in MongoDB plus pending entries',
    stored.balanceNano + sum(pending.map(amountOf)),
    hot.balanceNano,
  );
  compareMoney('refills in Redis', stored.totalAddedNano + sum(added), hot.totalAddedNano);
  compareCount('free requests in Redis', stored.freeRequests + free, hot.freeRequests);
  const rows = pending.filter((entry) => entry.kind === 'charge' && entry.ordinal > 0).length;
  compareCount('charges in Redis', stored.charges + rows, hot.charges);

  const paid = reservations.filter((one) => !one.free);
  compareMoney(
    'reserved by requests and jobs in progress',
    sum(paid.map((one) => one.costNano)) + jobs.costNano,
    hot.reservedNano,
  );
  compareCount('free requests reserved', reservations.length - paid.length + jobs.free, hot.freeHeld);
  if (jobs.summed !== null) {
    compareMoney('reserved by durable jobs', jobs.summed.costNano, jobs.costNano);
    compareCount('free requests reserved by durable jobs', jobs.summed.free, jobs.free);
  }
  compareMoney('reserved by lines of batches', jobs.summedLinesNano, jobs.linesNano);
  if (hot.budgets.length > 0 && jobs.summed !== null)
    for (const day of new Set([...jobs.byDay.keys(), ...jobs.summed.byDay.keys()]))
      compareMoney(
        `reserved by durable jobs of ${nameDay(day)}`,
        jobs.summed.byDay.get(day) ?? 0n,
        jobs.byDay.get(day) ?? 0n,
      );
  for (const budget of hot.budgets) {
    const ofBudget = `of the ${budget.period} budget`;
    compareMoney(`spent ${ofBudget}`, sumSpent(snapshot, budget), budget.spentNano);
    compareMoney(`reserved ${ofBudget}`, sumReserved(snapshot, budget), budget.reservedNano);
  }
  if (hot.balanceNano < 0n) compareMoney('balance is not negative', 0n, hot.balanceNano);
  if (hot.reservedNano > hot.balanceNano)
    compareMoney('balance covers reservations', hot.reservedNano, hot.balanceNano);
  return differences;
}

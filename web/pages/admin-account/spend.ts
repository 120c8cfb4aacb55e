import type { Schema } from '../../admin/api.ts';
import { groupBy } from '../../lib/group-by.ts';
import { addRoubles } from '../../lib/nano.ts';

export type SpendRow = Schema<'AdminSpend'>;

export const spendDays = 30;
const dayMs = 24 * 3_600_000;

/** The days of UTC up to today, oldest first: `2026-11-29`. */
export const lastDays = (nowMs = Date.now()): readonly string[] =>
  Array.from({ length: spendDays }, (_, i) =>
    new Date(nowMs - (spendDays - 1 - i) * dayMs).toISOString().slice(0, 10),
  );

const addKnown = (sums: readonly (number | null)[]): number | null => {
  const known = sums.filter((sum) => sum !== null);
  return known.length === 0 ? null : Number(addRoubles(known));
};

/** Adds up rows. Sums of money are exact. */
export function addSpend(rows: readonly SpendRow[]): Omit<SpendRow, 'account' | 'model' | 'day'> {
  const count = (read: (row: SpendRow) => number): number => rows.reduce((sum, row) => sum + read(row), 0);
  return {
    requests: count((row) => row.requests),
    failures: count((row) => row.failures),
    free_requests: count((row) => row.free_requests),
    prompt_tokens: count((row) => row.prompt_tokens),
    cached_tokens: count((row) => row.cached_tokens),
    completion_tokens: count((row) => row.completion_tokens),
    cost: Number(addRoubles(rows.map(({ cost }) => cost))),
    vendor_cost: addKnown(rows.map((row) => row.vendor_cost)),
    margin: addKnown(rows.map(({ margin }) => margin)),
    costed_requests: count((row) => row.costed_requests),
  };
}

/** The rows of each model added up, the most expensive first. */
export function sumByModel(rows: readonly SpendRow[]): readonly SpendRow[] {
  const byModel = groupBy(rows, ({ model }) => model ?? '');
  return [...byModel]
    .map(([model, ofModel]) => ({ model, ...addSpend(ofModel) }))
    .toSorted((one, other) => other.cost - one.cost || other.requests - one.requests);
}

/** What was paid on each of the days; 0 without requests. */
export const costByDay = (rows: readonly SpendRow[], days: readonly string[]): readonly number[] => {
  const byDay = groupBy(rows, ({ day }) => day ?? '');
  return days.map((day) => addSpend(byDay.get(day) ?? []).cost);
};

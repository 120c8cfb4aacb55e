import type { operations } from '../../generated/api.d.ts';
import type { Roubles } from '../../lib/format.ts';
import { groupBy } from '../../lib/group-by.ts';
import { addRoubles } from '../../lib/nano.ts';
import { adminApi, call, type Schema } from '../api.ts';

export type SpendQuery = operations['getSpend']['parameters']['query'];
export type SpendOrder = NonNullable<NonNullable<SpendQuery>['sort']>;
export type SpendRow = Schema<'AdminSpend'>;
type Listed = operations['getSpend']['responses'][200]['content']['application/json'];

/** What a row, or several, add up to. Sums of several may be decimal strings, which are exact. */
export interface SpendSums extends Pick<
  SpendRow,
  'requests' | 'failures' | 'prompt_tokens' | 'completion_tokens' | 'costed_requests'
> {
  readonly cost: Roubles;
  readonly vendor_cost: Roubles | null;
  readonly margin: Roubles | null;
}

/** Reads sums of what requests cost. @throws ApiError */
export async function readSpend(query: SpendQuery, signal: AbortSignal): Promise<Listed> {
  const spend = await call(adminApi.GET('/v1/admin/spend', { params: { query }, signal }));
  if (typeof spend === 'string') throw new TypeError('the sums came as CSV');
  return spend;
}

/** The part of what customers paid that is left; of the requests whose vendor cost is known. */
export function findShare({ vendor_cost: vendorCost, margin }: SpendSums): number | null {
  const paid = Number(vendorCost) + Number(margin);
  return vendorCost === null || margin === null || paid === 0 ? null : Number(margin) / paid;
}

const dayMs = 24 * 3_600_000;

/** @param day of UTC, `2026-11-29` */
export const addDays = (day: string, count: number): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + count * dayMs).toISOString().slice(0, 10);

/** The days from one to another, oldest first. */
export const listDays = (since: string, until: string): readonly string[] =>
  Array.from({ length: Math.round((Date.parse(until) - Date.parse(since)) / dayMs) + 1 }, (_, i) =>
    addDays(since, i),
  );

const addKnown = (sums: readonly (number | null)[]): number | null => {
  const known = sums.filter((sum) => sum !== null);
  return known.length === 0 ? null : Number(addRoubles(known));
};

/** Adds up rows. Sums of money are exact. */
export function addSpend(
  rows: readonly SpendRow[],
): Omit<SpendRow, 'account' | 'name' | 'upstream' | 'model' | 'day'> {
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

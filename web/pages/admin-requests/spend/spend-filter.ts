import { addDays, type SpendOrder } from '../../../admin/spend/spend.ts';
import { useAddressFilters, type FilterChanges } from '../../../lib/address-filters.ts';
import { dayBefore } from '../../../lib/daily-stats.ts';

/** What sums can be made by. Those by account and those by upstream are kept apart. */
export const groupings = [
  'account',
  'account,model',
  'account,day',
  'upstream',
  'upstream,model',
  'upstream,day',
  'model',
  'model,day',
  'day',
] as const;
export type Grouping = (typeof groupings)[number];

export const periods = ['30', '7', '90', '365', 'own'] as const;
export type Period = (typeof periods)[number];

const orders: readonly SpendOrder[] = [
  'cost',
  'requests',
  'failures',
  'tokens',
  'vendor_cost',
  'margin',
  'margin_share',
  'day',
];

/** What is summed, as it is in the address. Empty texts select everything. */
export interface SpendFilter {
  readonly by: Grouping;
  readonly account: string;
  readonly upstream: string;
  readonly model: string;
  readonly period: Period;
  /** Days of UTC, both included. */
  readonly since: string;
  readonly until: string;
  readonly sort: SpendOrder;
  readonly order: 'desc' | 'asc';
}

const readDay = (text: string | null): string | null =>
  text !== null && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)) ? text : null;

const isOf = (by: Grouping, dimension: string): boolean => by.split(',').includes(dimension);

/** Reads the address. What cannot be summed together is left out. */
function readFilter(params: URLSearchParams): SpendFilter {
  const read = (name: string): string => params.get(name) ?? '';
  const by = groupings.find((known) => known === read('by')) ?? 'account';
  const period = periods.find((known) => known === read('days')) ?? '30';
  const until = (period === 'own' ? readDay(params.get('to')) : null) ?? dayBefore(0);
  const length = period === 'own' ? 30 : Number(period);
  const since = (period === 'own' ? readDay(params.get('from')) : null) ?? addDays(until, 1 - length);
  return {
    by,
    account: isOf(by, 'upstream') ? '' : read('account'),
    upstream:
      isOf(by, 'account') || (read('account') !== '' && !isOf(by, 'upstream')) ? '' : read('upstream'),
    model: read('model'),
    period,
    since,
    until,
    sort: orders.find((known) => known === read('sort')) ?? (by === 'day' ? 'day' : 'cost'),
    order: read('order') === 'asc' ? 'asc' : 'desc',
  };
}

/** What is summed, and functions that change it. */
export function useSpendFilter() {
  const [params, change] = useAddressFilters();
  const filter = readFilter(params);
  const { by } = filter;
  return {
    filter,
    setFilter: (changes: FilterChanges): void => change(changes),
    groupBy: (next: Grouping): void =>
      change({
        by: next === 'account' ? null : next,
        ...(isOf(next, 'account') ? { upstream: null } : {}),
        ...(isOf(next, 'upstream') ? { account: null } : {}),
        ...(isOf(next, 'day') ? {} : sortBy(filter, null)),
      }),
    setAccount: (account: string | null): void =>
      change({ account, upstream: null, ...(isOf(by, 'upstream') ? { by: 'model' } : {}) }),
    setUpstream: (upstream: string | null): void =>
      change({ upstream, account: null, ...(isOf(by, 'account') ? { by: 'model' } : {}) }),
    setPeriod: (period: Period): void =>
      change(
        period === 'own'
          ? { days: 'own', from: filter.since, to: filter.until }
          : { days: period === '30' ? null : period, from: null, to: null },
      ),
    sortBy: (order: SpendOrder): void => change(sortBy(filter, order)),
  };
}

/** Sorts by something, or by the same the other way round; by null as usual. */
function sortBy(filter: SpendFilter, sort: SpendOrder | null): FilterChanges {
  const isSame = filter.sort === sort;
  return { sort, order: isSame && filter.order === 'desc' ? 'asc' : null };
}

/** What the filters select, as the operation of the API takes it. */
export function toSelection({ by, account, upstream, model, since, until }: SpendFilter) {
  return {
    by,
    since,
    until,
    ...(account === '' ? {} : { account }),
    ...(upstream === '' ? {} : { upstream }),
    ...(model === '' ? {} : { model }),
  };
}

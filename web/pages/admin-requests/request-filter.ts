import { requestOutcomes, type RequestOutcomeName } from '../../../shared/contract/request-terms.ts';
import type { RequestQuery } from '../../admin/read-requests.ts';
import { hrefWith, useAddressFilters, type FilterChanges } from '../../lib/address-filters.ts';
import { boundsAt, noPeriod, readPeriod, type AddressPeriod } from '../../lib/address-period.ts';

export const periods = ['all', 'hour', 'today', 'day', 'week'] as const;
export type Period = (typeof periods)[number];

/** What is looked for, as it is in the address. Empty texts select everything. */
export interface RequestFilter {
  readonly account: string;
  readonly model: string;
  readonly upstream: string;
  readonly outcome: RequestOutcomeName | '';
  readonly period: AddressPeriod<Period>;
}

/** What is looked for, as the operation of the API takes it. */
export type Selection = Omit<RequestQuery, 'limit' | 'after'>;

export const noFilter = { account: null, model: null, upstream: null, outcome: null, ...noPeriod };

const path = '/admin/requests';

/** The filters in the address, and functions that change them. */
export function useRequestFilter() {
  const [params, change] = useAddressFilters();
  const read = (name: string): string => params.get(name) ?? '';
  const filter: RequestFilter = {
    account: read('account'),
    model: read('model'),
    upstream: read('upstream'),
    outcome: requestOutcomes.find((known) => known === read('outcome')) ?? '',
    period: readPeriod(params, periods),
  };
  return {
    filter,
    isFiltered: Object.keys(noFilter).some((name) => read(name) !== ''),
    /** The id of the request whose details are open; empty for none. */
    openId: read('id'),
    setFilter: (changes: FilterChanges): void => change(changes),
    clear: (): void => change(noFilter),
    open: (id: string | null): void => change({ id }),
    /** The address of a request's details, over this list. */
    hrefOf: (id: string): string => hrefWith(path, { id }, params),
    /** The address of another list, without details. */
    hrefOfList: (filters: FilterChanges): string => hrefWith(path, filters),
  };
}

/** What the filters select at a time: periods that end now begin later each time. */
export function selectAt(filter: RequestFilter, nowMs: number, timeZone: string): Selection {
  const { account, model, upstream, outcome, period } = filter;
  return {
    ...(account === '' ? {} : { account }),
    ...(model === '' ? {} : { model }),
    ...(upstream === '' ? {} : { upstream }),
    ...(outcome === '' ? {} : { outcome }),
    ...boundsAt(period, nowMs, timeZone),
  };
}

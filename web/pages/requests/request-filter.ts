import { requestOutcomes, type RequestOutcomeName } from '../../../shared/contract/request-terms.ts';
import { hrefWith, useAddressFilters, type FilterChanges } from '../../lib/address-filters.ts';
import {
  hoursBefore,
  noPeriod,
  ownBounds,
  readPeriod,
  type AddressPeriod,
} from '../../lib/address-period.ts';
import type { operations } from '../../generated/api.d.ts';

type LogQuery = NonNullable<operations['listRequestLogsOfApiAccount']['parameters']['query']>;
/** What is looked for, as the operation of the API takes it. */
export type Selection = Omit<LogQuery, 'page'>;

export const periods = ['all', 'hour', 'day'] as const;
export type Period = (typeof periods)[number];

/** How long single requests are shown. Daily totals go on for a month. */
const keptHours = 72;
const hoursOf = { hour: 1, day: 24, all: keptHours } as const;

/** What is looked for, as it is in the address. Empty texts select everything. */
export interface RequestFilter {
  readonly model: string;
  readonly outcome: RequestOutcomeName | '';
  readonly period: AddressPeriod<Period>;
  /** Found whatever the other filters are. */
  readonly requestId: string;
}

const noFilter = { model: null, outcome: null, ...noPeriod, request_id: null };

/** The filters in the address, and functions that change some and go back to the first page. */
export function useRequestFilter() {
  const [params, change] = useAddressFilters();
  const read = (name: string): string => params.get(name) ?? '';
  const filter: RequestFilter = {
    model: read('model'),
    outcome: requestOutcomes.find((known) => known === read('outcome')) ?? '',
    period: readPeriod(params, periods),
    requestId: read('request_id'),
  };
  const setFilter = (changes: FilterChanges): void => change({ ...changes, page: null });
  return {
    filter,
    isFiltered: Object.keys(noFilter).some((name) => read(name) !== ''),
    page: Math.max(1, Math.trunc(Number(read('page'))) || 1),
    /** The id of the request whose details are open; empty for none. */
    openId: read('request'),
    setFilter,
    findById: (id: string): void => setFilter({ ...noFilter, request_id: id === '' ? null : id }),
    clear: (): void => setFilter(noFilter),
    setPage: (next: number): void => change({ page: next === 1 ? null : String(next) }),
    closeRequest: (): void => change({ request: null }),
    /** The address of a request's details, on this page of the log. */
    hrefOf: (id: string): string => hrefWith('/requests', { request: id }, params),
  };
}

/** What the filters select at a time: periods that end now begin later each time. */
export function selectAt({ model, outcome, period, requestId }: RequestFilter, nowMs: number): Selection {
  if (requestId !== '') return { request_id: requestId };
  const bounds = {
    all: {},
    hour: { since: hoursBefore(nowMs, hoursOf.hour) },
    day: { since: hoursBefore(nowMs, hoursOf.day) },
    own: ownBounds(period),
  };
  return {
    ...(model === '' ? {} : { model }),
    ...(outcome === '' ? {} : { outcome }),
    ...bounds[period.name],
  };
}

/** Whether some of an own period is longer ago than single requests are shown. */
export const beginsTooEarly = ({ period: { since } }: RequestFilter, nowMs = Date.now()): boolean =>
  since !== '' && Date.parse(since) < nowMs - keptHours * 3_600_000;

/** Whether requests that end from now on may belong to it. */
export const isOpenEnded = ({ requestId, period: { until } }: RequestFilter, nowMs = Date.now()): boolean =>
  requestId === '' && (until === '' || Date.parse(until) > nowMs);

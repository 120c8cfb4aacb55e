import { hrefWith, useAddressFilters, type FilterChanges } from '../../lib/address-filters.ts';
import { boundsAt, noPeriod, readPeriod, type AddressPeriod } from '../../lib/address-period.ts';

export const periods = ['all', 'hour', 'today', 'week'] as const;

/** What is looked for, as it is in the address. Empty texts select everything. */
export interface AuditFilter {
  readonly token: string;
  /** Such as `account`, `account:0197…`, or `:0197…` for any type. */
  readonly resource: string;
  readonly period: AddressPeriod<(typeof periods)[number]>;
}

const noFilter = { token: null, resource: null, ...noPeriod };

/** The filters in the address, and functions that change them. */
export function useAuditFilter() {
  const [params, change] = useAddressFilters();
  const read = (name: string): string => params.get(name) ?? '';
  const filter: AuditFilter = {
    token: read('token'),
    resource: read('resource'),
    period: readPeriod(params, periods),
  };
  return {
    filter,
    isFiltered: Object.keys(noFilter).some((name) => read(name) !== ''),
    /** The id of the event whose details are open; empty for none. */
    openId: read('id'),
    setFilter: (changes: FilterChanges): void => change(changes),
    clear: (): void => change(noFilter),
    open: (id: string | null): void => change({ id }),
    hrefOf: (id: string): string => hrefWith('/admin/audit', { id }, params),
  };
}

/** What the filters select at a time, as the operation of the API takes it. */
export function selectAt({ token, resource, period }: AuditFilter, nowMs: number, timeZone: string) {
  return {
    ...(token === '' ? {} : { token }),
    ...(resource === '' ? {} : { resource }),
    ...boundsAt(period, nowMs, timeZone),
  };
}

/** @param type empty for any @param id empty for all */
export const joinResource = (type: string, id: string): string => (id === '' ? type : `${type}:${id}`);

/** @returns the type of a resource, which is empty for any, and its id, which is empty for all of the type */
export function splitResource(resource: string): { readonly type: string; readonly id: string } {
  const end = resource.indexOf(':');
  return end === -1
    ? { type: resource, id: '' }
    : { type: resource.slice(0, end), id: resource.slice(end + 1) };
}

import { useAddressFilters, type FilterChanges } from '../../lib/address-filters.ts';

export const outcomes = ['success', 'error'] as const;
type Outcome = (typeof outcomes)[number];

/** What is looked for, as the operation of the API takes it. */
export interface RequestFilter {
  readonly model?: string;
  readonly outcome?: Outcome;
  /** RFC 3339, in UTC. */
  readonly since?: string;
  readonly until?: string;
  readonly request_id?: string;
}

const names = ['model', 'since', 'until', 'request_id'] as const;

/** The filters in the address, and a function that changes some and goes back to the first page. */
export function useRequestFilter() {
  const [params, change] = useAddressFilters();
  const outcome = outcomes.find((known) => known === params.get('outcome'));
  const given = names.flatMap((name) => {
    const value = params.get(name) ?? '';
    return value === '' ? [] : [[name, value] as const];
  });
  const filter: RequestFilter = {
    ...Object.fromEntries(given),
    ...(outcome === undefined ? {} : { outcome }),
  };
  const page = Math.max(1, Math.trunc(Number(params.get('page') ?? 1)) || 1);
  return {
    filter,
    page,
    setFilter: (changes: FilterChanges): void => change({ ...changes, page: null }),
    setPage: (next: number): void => change({ page: next === 1 ? null : String(next) }),
  };
}

/** From the value of a `datetime-local` field, which is in the time zone of this device; null if it is empty. */
export function toUtc(local: string): string | null {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}

/** For a `datetime-local` field; empty without a time. */
export function toLocal(utc: string | undefined): string {
  const time = new Date(utc ?? '');
  if (Number.isNaN(time.getTime())) return '';
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

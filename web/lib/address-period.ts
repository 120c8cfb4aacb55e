import type { FilterChanges } from './address-filters.ts';
import { fromZoned, toZoned } from './zoned-time.ts';

/** A period that is in the address: one with a name that ends now, or one of its own, from … to …. */
export interface AddressPeriod<Name extends string> {
  readonly name: Name | 'own';
  /** RFC 3339, in UTC; of an own period. Empty for none. */
  readonly since: string;
  readonly until: string;
}

/** @param names the first one is that of an address without a period */
export function readPeriod<Name extends string>(
  params: URLSearchParams,
  names: readonly [Name, ...Name[]],
): AddressPeriod<Name> {
  const [since, until] = [params.get('since') ?? '', params.get('until') ?? ''];
  const named = names.find((known) => known === params.get('period')) ?? names[0];
  return { name: since === '' && until === '' ? named : 'own', since, until };
}

export const noPeriod = { period: null, since: null, until: null } satisfies FilterChanges;

/** Changes the address to a period. One of its own begins with the last day, to be changed. */
export function changePeriod(name: string, usualName: string, nowMs = Date.now()): FilterChanges {
  if (name === 'own') return { ...noPeriod, since: `${hoursBefore(nowMs, 24).slice(0, 16)}:00Z` };
  return { ...noPeriod, period: name === usualName ? null : name };
}

/** The bounds of an own period, as operations of the API take them. */
export const ownBounds = ({
  since,
  until,
}: Pick<AddressPeriod<string>, 'since' | 'until'>): {
  readonly since?: string;
  readonly until?: string;
} => ({ ...(since === '' ? {} : { since }), ...(until === '' ? {} : { until }) });

/** Periods that end now, whose length or beginning is in their name. */
export type RecentPeriod = 'all' | 'hour' | 'today' | 'day' | 'week';

/** The bounds of a period at a time, as operations of the API take them. @param timeZone of `today` */
export function boundsAt(
  period: AddressPeriod<RecentPeriod>,
  nowMs: number,
  timeZone: string,
): { readonly since?: string; readonly until?: string } {
  switch (period.name) {
    case 'all':
      return {};
    case 'hour':
      return { since: hoursBefore(nowMs, 1) };
    case 'today':
      return { since: fromZoned(`${toZoned(nowMs, timeZone).slice(0, 10)}T00:00`, timeZone)! };
    case 'day':
      return { since: hoursBefore(nowMs, 24) };
    case 'week':
      return { since: hoursBefore(nowMs, 7 * 24) };
    case 'own':
      return ownBounds(period);
  }
}

export const hoursBefore = (nowMs: number, hours: number): string =>
  new Date(nowMs - hours * 3_600_000).toISOString();

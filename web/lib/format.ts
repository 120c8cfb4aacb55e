import { useMemo } from 'preact/hooks';
import { useLanguage } from './language.tsx';
import type { Language } from './messages.ts';
import { useSession } from './session.ts';

/** Roubles as the API gives them: a number, or a decimal string that is exact. */
export type Roubles = number | string;

/** Digits after the point that tell a sum from others of its size: kopecks from a rouble on. */
function digitsFor(roubles: number): { minimumFractionDigits: number; maximumFractionDigits: number } {
  const size = Math.abs(roubles);
  if (size === 0 || size >= 1) return { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  if (size >= 0.01) return { minimumFractionDigits: 2, maximumFractionDigits: 4 };
  return { minimumFractionDigits: 2, maximumFractionDigits: 6 };
}

/** Sums are exact to a billionth of a rouble. */
const allDigits = { minimumFractionDigits: 2, maximumFractionDigits: 9 };

const toTheSecond = { dateStyle: 'medium', timeStyle: 'medium' } as const;
const toTheMillisecond = {
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: 'numeric',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
} as const;

function createFormat(language: Language, timeZone: string) {
  const number = (value: number, options?: Intl.NumberFormatOptions): string =>
    new Intl.NumberFormat(language, options).format(value);
  const money = (value: Roubles, options: Intl.NumberFormatOptions): string =>
    new Intl.NumberFormat(language, {
      style: 'currency',
      currency: 'RUB',
      currencyDisplay: 'narrowSymbol',
      ...options,
      // Strings keep digits that a number would lose.
    }).format(value as number);
  const date = (value: string | number | Date, options: Intl.DateTimeFormatOptions): string =>
    new Intl.DateTimeFormat(language, { timeZone, ...options }).format(new Date(value));
  const relative = new Intl.RelativeTimeFormat(language, { numeric: 'auto' });
  return {
    timeZone,
    number,
    /** With every digit that it has, such as the seconds that are charged. */
    exactNumber: (value: number): string => number(value, { maximumFractionDigits: 9 }),
    /** `1,2 тыс.`, `3.4M` */
    short: (value: number): string => number(value, { notation: 'compact', maximumFractionDigits: 1 }),
    /** @param share 0 to 1 */
    percent: (share: number): string => number(share, { style: 'percent', maximumFractionDigits: 1 }),
    /** With as many digits as matter. */
    money: (value: Roubles): string => money(value, digitsFor(Number(value))),
    /** A price of the catalog, with every digit that it has: `50 ₽`, `7,50 ₽`. */
    price: (value: number): string =>
      money(value, { ...allDigits, minimumFractionDigits: Number.isInteger(value) ? 0 : 2 }),
    /** With every digit that the sum has. @param digits at least so many after the point, such as those of other sums */
    exactMoney: (value: Roubles, digits = 2): string =>
      money(value, { ...allDigits, minimumFractionDigits: digits }),
    dateTime: (value: string | number | Date): string =>
      date(value, { dateStyle: 'medium', timeStyle: 'short' }),
    /** With milliseconds, of times that have them. */
    exactTime: (value: string | number | Date): string =>
      date(value, new Date(value).getMilliseconds() === 0 ? toTheSecond : toTheMillisecond),
    /** Of the last days, so without the year. */
    recentTime: (value: string | number | Date): string =>
      date(value, { day: 'numeric', month: 'short', hour: 'numeric', minute: '2-digit', second: '2-digit' }),
    date: (value: string | number | Date): string => date(value, { dateStyle: 'medium' }),
    time: (value: string | number | Date): string => date(value, { timeStyle: 'short' }),
    /** With seconds. */
    clock: (value: string | number | Date): string => date(value, { timeStyle: 'medium' }),
    /** A day of the API's statistics, `2026-11-29`, which are days of UTC. */
    day: (value: string): string =>
      new Intl.DateTimeFormat(language, { timeZone: 'UTC', day: 'numeric', month: 'short' }).format(
        new Date(`${value}T00:00:00Z`),
      ),
    /** The same with the year. */
    fullDay: (value: string): string =>
      new Intl.DateTimeFormat(language, { timeZone: 'UTC', dateStyle: 'medium' }).format(
        new Date(`${value}T00:00:00Z`),
      ),
    /** `5 minutes ago` */
    ago: (value: string | number | Date, nowMs = Date.now()): string =>
      formatAgo(relative, new Date(value).getTime() - nowMs),
    seconds: (value: number): string =>
      number(value, {
        style: 'unit',
        unit: 'second',
        unitDisplay: 'short',
        maximumFractionDigits: value < 10 ? 2 : 0,
      }),
    /** With milliseconds. */
    exactSeconds: (value: number): string =>
      number(value, {
        style: 'unit',
        unit: 'second',
        unitDisplay: 'short',
        minimumFractionDigits: 3,
        maximumFractionDigits: 3,
      }),
    /** `2 h 5 min`: the two largest units of a time that may be long. */
    duration: (seconds: number): string => formatDuration(number, seconds),
    bytes: (value: number): string => formatBytes(number, value),
  };
}

export type Format = ReturnType<typeof createFormat>;

const agoUnits = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

function formatAgo(relative: Intl.RelativeTimeFormat, differenceMs: number): string {
  for (const [unit, size] of agoUnits)
    if (Math.abs(differenceMs) >= size) return relative.format(Math.trunc(differenceMs / size), unit);
  return relative.format(Math.trunc(differenceMs / 1_000), 'second');
}

const durationUnits = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const;

function formatDuration(
  number: (value: number, options: Intl.NumberFormatOptions) => string,
  seconds: number,
): string {
  const write = (value: number, unit: string): string =>
    number(value, {
      style: 'unit',
      unit,
      unitDisplay: 'short',
      maximumFractionDigits: value < 10 && unit === 'second' && seconds < 10 ? 1 : 0,
    });
  if (seconds < 60) return write(seconds, 'second');
  const first = durationUnits.findIndex(([, size]) => seconds >= size);
  const [unit, size] = durationUnits[first]!;
  const [nextUnit, nextSize] = durationUnits[first + 1]!;
  const rest = Math.floor((seconds % size) / nextSize);
  const whole = write(Math.floor(seconds / size), unit);
  return rest === 0 ? whole : `${whole} ${write(rest, nextUnit)}`;
}

const byteUnits = ['byte', 'kilobyte', 'megabyte', 'gigabyte'] as const;

function formatBytes(number: (value: number, options: Intl.NumberFormatOptions) => string, bytes: number) {
  const step = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), byteUnits.length - 1);
  return number(bytes / 1_000 ** step, {
    style: 'unit',
    unit: byteUnits[step]!,
    unitDisplay: 'short',
    maximumFractionDigits: 1,
  });
}

export const browserTimeZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Formats for the user's language and time zone. */
export function useFormat(): Format {
  const language = useLanguage();
  const timeZone = useSession().user?.timezone ?? browserTimeZone();
  return useMemo(() => createFormat(language, timeZone), [language, timeZone]);
}

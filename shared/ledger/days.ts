const dayMs = 24 * 60 * 60 * 1_000;

/** The day of a time in UTC, as YYYY-MM-DD. */
export const toDay = (time: Date): string => time.toISOString().slice(0, 10);

/** The first moment of a day, given as YYYY-MM-DD. */
export const startOfDay = (day: string): Date => new Date(`${day}T00:00:00.000Z`);

/** The day so many days later, or earlier. */
export const addDays = (day: string, days: number): string =>
  toDay(new Date(startOfDay(day).getTime() + days * dayMs));

/** Returns null unless the text is a day of the calendar, as YYYY-MM-DD, that years with four digits have. */
export function readDay(text: string): string | null {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return null;
  const time = startOfDay(text);
  return !Number.isNaN(time.getTime()) && toDay(time) === text ? text : null;
}

const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

/**
 * Reads a bound of a period: a time in RFC 3339 format, or a day in UTC, which is included as a whole.
 * @param side of the period: its first moment, or the first moment after it
 * @returns null if the text is neither
 */
export function readBound(text: string, side: 'since' | 'until'): Date | null {
  const day = readDay(text);
  if (day !== null) return startOfDay(side === 'since' ? day : addDays(day, 1));
  const time = timePattern.test(text) ? new Date(text) : null;
  return time === null || Number.isNaN(time.getTime()) ? null : time;
}

/** Reads as the value of a `datetime-local` field: `2026-11-29T14:30`. Empty for no time. */
export function toZoned(instant: string | number | undefined, timeZone: string): string {
  const time = new Date(instant ?? Number.NaN);
  if (Number.isNaN(time.getTime())) return '';
  const parts = new Intl.DateTimeFormat('en', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  }).formatToParts(time);
  const read = (type: Intl.DateTimeFormatPartTypes): string =>
    parts.find((part) => part.type === type)?.value ?? '';
  return `${read('year').padStart(4, '0')}-${read('month')}-${read('day')}T${read('hour')}:${read('minute')}`;
}

/**
 * Returns the instant of the value of a `datetime-local` field as `2026-11-29T11:30:00Z`, or null if it is empty. A time
 * that the clocks skip is moved by what they skip.
 */
export function fromZoned(local: string, timeZone: string): string | null {
  const asUtcMs = Date.parse(`${local}Z`);
  if (Number.isNaN(asUtcMs)) return null;
  const offsetAt = (ms: number): number => Date.parse(`${toZoned(ms, timeZone)}Z`) - ms;
  // The offset may change between the first guess and the time itself.
  const guess = asUtcMs - offsetAt(asUtcMs);
  return `${new Date(asUtcMs - offsetAt(guess)).toISOString().slice(0, 16)}:00Z`;
}

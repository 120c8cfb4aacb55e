import { invalidField } from '../../shared/contract/errors.ts';

export const cancelAfterHeader = 'Cancel-After';

/** A day: longer than any work that a model does. */
const maxCancelAfterSeconds = 24 * 60 * 60;

const secondsPerUnit: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3_600 };

export const cancelAfterPattern = '^\\d+(s|m|h)?$';

/**
 * Reads how long the whole work of a job may take, such as `90s`, `15m` or `1h`; a number alone is in seconds. Returns
 * milliseconds.
 * @throws AppError `validation_failed`
 */
export function readCancelAfter(header: string): number {
  const [, digits = '', unit = ''] = /^(\d{1,9})([smh]?)$/.exec(header.trim()) ?? [];
  const seconds = Number(digits) * secondsPerUnit[unit]!;
  if (seconds >= 1 && seconds <= maxCancelAfterSeconds) return seconds * 1_000;
  throw invalidField(
    ['header', cancelAfterHeader],
    'must be a time from 1 second to 24 hours, such as 90s, 15m or 1h; a number alone is in seconds',
  );
}

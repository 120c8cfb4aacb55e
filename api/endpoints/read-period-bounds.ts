import { invalidField } from '../../shared/contract/errors.ts';
import { readBound } from '../../shared/ledger/days.ts';

export interface PeriodBounds {
  /** Included. */
  readonly since: Date | undefined;
  /** Not included. */
  readonly until: Date | undefined;
}

/**
 * Reads the bounds of a period: times in RFC 3339 format, or days in UTC, of which `until` includes the last one.
 * @throws AppError `validation_failed` if one is neither, or the period is empty
 */
export function readPeriodBounds(query: {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}): PeriodBounds {
  const since = readTime(query.since, 'since');
  const until = readTime(query.until, 'until');
  if (since !== undefined && until !== undefined && since >= until)
    throw invalidField(['query', 'since'], 'must be before until');
  return { since, until };
}

function readTime(text: string | undefined, name: 'since' | 'until'): Date | undefined {
  if (text === undefined) return undefined;
  const time = readBound(text, name);
  if (time !== null) return time;
  throw invalidField(
    ['query', name],
    'must be a day, such as 2026-11-30, or a time, such as 2026-11-30T12:00:00Z',
  );
}

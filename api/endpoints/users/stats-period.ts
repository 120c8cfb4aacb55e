import { invalidField } from '../../../shared/contract/errors.ts';
import { toDay } from '../../../shared/ledger/days.ts';
import type { StatsQuery } from '../../contract/users.ts';

/** Days as YYYY-MM-DD in UTC, both inclusive. As strings they sort chronologically. */
export interface StatsPeriod {
  readonly start: string;
  readonly end: string;
}

const daysBack = 30;
const dayMs = 24 * 60 * 60 * 1_000;

/**
 * Reads the requested days.
 * @param query its days must be valid calendar days
 * @throws AppError `validation_failed` if they lie outside the retention period or are in the wrong order
 */
export function readPeriod(query: StatsQuery, now: Date): StatsPeriod {
  const earliest = toDay(new Date(now.getTime() - daysBack * dayMs));
  const { start_date: start = earliest, end_date: end = toDay(now) } = query;
  for (const [name, day] of Object.entries({ start_date: start, end_date: end })) {
    if (day < earliest) {
      throw invalidField(
        ['query', name],
        `must not be before ${earliest}: statistics are available for the last ${daysBack} days`,
        { msgRu: `не может быть раньше ${earliest}: статистика доступна за последние ${daysBack} дней` },
      );
    }
  }
  if (start > end) {
    const msgRu = `не может быть позже даты окончания, ${end}`;
    throw invalidField(['query', 'start_date'], `must not be after the end date, ${end}`, { msgRu });
  }
  return { start, end };
}

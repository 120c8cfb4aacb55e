import { writeCsvRow } from '../../../shared/encoding/csv.ts';
import type { DailyStat } from '../../lib/daily-stats.ts';

const columns = [
  'stat_date',
  'model_name',
  'request_count',
  'prompt_tokens',
  'cache_read_tokens',
  'completion_tokens',
  'free_requests',
  'cost_request',
] as const satisfies readonly (keyof DailyStat)[];

/** Returns days as CSV, with the names that the API gives them. */
export const writeDaysCsv = (stats: readonly DailyStat[]): string =>
  [columns, ...stats.map((stat) => columns.map((name) => stat[name] ?? null))].map(writeCsvRow).join('');

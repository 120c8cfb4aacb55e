import type { DailyStat, RefillLog, Stats } from '../../contract/users.ts';
import type { DayStat } from './history-store.ts';
import type { RefillPage } from '../../../shared/ledger/refill-list-store.ts';
import { sourceOf, type RefillLogDocument } from '../../../shared/ledger/refill-rows.ts';
import { formatRub, toRubNumber } from '../../../shared/encoding/money.ts';
import { describePage, writePage } from '../../responses/write-page.ts';

export const writeRefillLogs = (
  { totalCount, rows }: RefillPage,
  page: number,
  pageSize: number,
): Iterable<string> => writePage(describePage(totalCount, page, pageSize), rows, presentRefillLog);

function presentRefillLog(row: RefillLogDocument): RefillLog {
  return {
    created_at: row.at.toISOString(),
    refill_code_redeemed: row.code,
    balance_added: formatRub(row.amountNano),
    free_requests_added: row.freeRequests,
    source: sourceOf(row),
    note: row.note ?? null,
  };
}

/** @param days oldest first */
export function presentStats(
  period: { readonly start: string; readonly end: string },
  days: readonly DayStat[],
): Stats {
  const daily = days.map(presentDay);
  const sum = (of: (day: DailyStat) => number): number => daily.reduce((total, day) => total + of(day), 0);
  return {
    period_start_date: period.start,
    period_end_date: period.end,
    total_requests: sum((day) => day.request_count),
    total_prompt_tokens: sum((day) => day.prompt_tokens),
    total_completion_tokens: sum((day) => day.completion_tokens),
    total_cost: toRubNumber(days.reduce((total, day) => total + day.costNano, 0n)),
    total_free_requests: sum((day) => day.free_requests),
    daily_stats: daily,
  };
}

function presentDay(day: DayStat): DailyStat {
  return {
    stat_date: day.day,
    request_count: day.requests,
    prompt_tokens: day.promptTokens,
    cache_read_tokens: day.cacheReadTokens,
    completion_tokens: day.completionTokens,
    cost_request: toRubNumber(day.costNano),
    free_requests: day.freeRequests,
    ...(day.model !== undefined && { model_name: day.model }),
  };
}

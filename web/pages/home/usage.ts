import { dayBefore, secondsOfDay, statsDays, type DailyStat } from '../../lib/daily-stats.ts';
import { groupBy } from '../../lib/group-by.ts';
import { addRoubles, toNano } from '../../lib/nano.ts';

/** A value for each day up to today: a day without requests is 0. */
export interface UsageByDay {
  /** When the days begin, in seconds. */
  readonly times: readonly number[];
  /** In roubles. */
  readonly spend: readonly number[];
  /** What was spent in all, in roubles, exact. */
  readonly allSpend: string;
  readonly requests: readonly number[];
}

export function sumByDay(stats: readonly DailyStat[], nowMs = Date.now()): UsageByDay {
  const byDay = groupBy(stats, ({ stat_date: day }) => day);
  const days = Array.from({ length: statsDays }, (_, i) => dayBefore(statsDays - 1 - i, nowMs));
  return {
    times: days.map(secondsOfDay),
    spend: days.map((day) => Number(addRoubles((byDay.get(day) ?? []).map((stat) => stat.cost_request)))),
    allSpend: addRoubles(days.flatMap((day) => (byDay.get(day) ?? []).map((stat) => stat.cost_request))),
    requests: days.map((day) =>
      (byDay.get(day) ?? []).reduce((sum, { request_count: count }) => sum + count, 0),
    ),
  };
}

export interface ModelUsage {
  readonly model: string;
  readonly requests: number;
  readonly tokens: number;
  /** In roubles, exact. */
  readonly cost: string;
}

/** The models that cost the most, or that were used the most among those that cost the same. */
export function rankModels(stats: readonly DailyStat[]): ModelUsage[] {
  const usages = Array.from(
    groupBy(stats, ({ model_name: model }) => model ?? ''),
    ([model, days]): ModelUsage => ({
      model,
      requests: days.reduce((sum, day) => sum + day.request_count, 0),
      tokens: days.reduce((sum, day) => sum + day.prompt_tokens + day.completion_tokens, 0),
      cost: addRoubles(days.map((day) => day.cost_request)),
    }),
  );
  return usages.toSorted(
    (one, other) => Number(toNano(other.cost) - toNano(one.cost)) || other.requests - one.requests,
  );
}

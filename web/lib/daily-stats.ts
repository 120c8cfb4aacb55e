import { useQuery } from '@tanstack/preact-query';
import type { components, operations } from '../generated/api.d.ts';
import { api, call } from './api.ts';

export type Stats = operations['getStatsOfApiAccount']['responses'][200]['content']['application/json'];
export type DailyStat = components['schemas']['DailyStat'];

const dayMs = 24 * 3_600_000;
/** The statistics go back this far. */
export const statsDays = 30;

/** Days of the statistics are those of UTC. @param daysAgo 0 for today */
export const dayBefore = (daysAgo: number, nowMs = Date.now()): string =>
  new Date(nowMs - daysAgo * dayMs).toISOString().slice(0, 10);

/** When a day of the statistics begins, in seconds. */
export const secondsOfDay = (day: string): number => Date.parse(`${day}T00:00:00Z`) / 1_000;

/** What an account used on each day, by model, oldest first. Days without requests are missing. */
export const useDailyStats = (accountId: number, { since, until }: { since: string; until: string }) =>
  useQuery({
    queryKey: ['daily-stats', accountId, since, until],
    queryFn: ({ signal }) =>
      call(
        api.GET('/v1/web/api-accounts/{account_id}/stats', {
          params: {
            path: { account_id: accountId },
            query: { by: 'model', start_date: since, end_date: until },
          },
          signal,
        }),
      ),
    refetchInterval: 60_000,
  });

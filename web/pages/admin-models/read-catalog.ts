import { useQuery } from '@tanstack/preact-query';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { readAll } from '../../admin/read-all.ts';

export type AdminModel = Schema<'AdminModel'>;
export type AdminRoute = Schema<'AdminRoute'>;
export type Spend = Schema<'AdminSpend'>;
export type UpstreamState = Schema<'OverviewUpstream'>;

const pageSize = 100;
const pageOf = (after: string | null) => ({ limit: pageSize, ...(after === null ? {} : { after }) });

/** All models of the catalog, in its order. */
export const useAdminModels = () =>
  useQuery({
    queryKey: ['models'],
    queryFn: ({ signal }) =>
      readAll((after) =>
        call(adminApi.GET('/v1/admin/models', { params: { query: pageOf(after) }, signal })),
      ),
  });

/** A row for each route and key, as the running processes see them. */
export const useAdminRoutes = () =>
  useQuery({
    queryKey: ['routes'],
    queryFn: ({ signal }) =>
      readAll((after) =>
        call(adminApi.GET('/v1/admin/upstreams', { params: { query: pageOf(after) }, signal })),
      ),
  });

/** The last 24 hours of each model, by id. */
export const useHistories = () =>
  useQuery({
    queryKey: ['models-history'],
    queryFn: ({ signal }) => call(adminApi.GET('/v1/models/history', { signal })),
  });

/** What was spent today, in UTC, by the id of the model. */
export const useSpendToday = () =>
  useQuery({
    queryKey: ['spend-today'],
    queryFn: async ({ signal }) => {
      const since = new Date().toISOString().slice(0, 10);
      const spend = await call(
        adminApi.GET('/v1/admin/spend', { params: { query: { by: 'model', since } }, signal }),
      );
      if (typeof spend === 'string') throw new TypeError('the sums came as CSV');
      return new Map(spend.data.map((row) => [row.model ?? '', row] as const));
    },
  });

async function readUpstreams(signal?: AbortSignal): Promise<readonly UpstreamState[] | null> {
  return (await call(adminApi.GET('/v1/admin/overview', signal === undefined ? {} : { signal }))).upstreams;
}

/** Upstreams with their keys and slots. Null while they cannot be read. */
export const useUpstreams = () =>
  useQuery({ queryKey: ['overview-upstreams'], queryFn: ({ signal }) => readUpstreams(signal) });

/** An api process reads its overview at most every two seconds. */
const overviewMs = 2_000;
const stepMs = 400;

/** Waits until the overview shows that a whole upstream was drained or undrained, so that the page agrees with itself. */
export async function awaitDrained(upstream: string, isDrained: boolean): Promise<void> {
  for (let waitedMs = 0; waitedMs <= overviewMs; waitedMs += stepMs) {
    const state = (await readUpstreams())?.find(({ name }) => name === upstream);
    if (state === undefined || state.drained === isDrained) return;
    await new Promise((resolve) => setTimeout(resolve, stepMs));
  }
}

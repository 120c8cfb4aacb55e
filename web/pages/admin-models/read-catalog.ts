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

/** Upstreams with their keys and slots. Null while they cannot be read. */
export const useUpstreams = () =>
  useQuery({
    queryKey: ['overview-upstreams'],
    queryFn: async ({ signal }) => (await call(adminApi.GET('/v1/admin/overview', { signal }))).upstreams,
  });

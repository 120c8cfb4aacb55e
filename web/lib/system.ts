import { useQuery } from '@tanstack/preact-query';
import type { components } from '../generated/api.d.ts';
import { api, call } from './api.ts';
import { ApiError } from './api-error.ts';
import { statsRefreshMs } from './models.ts';

type Schemas = components['schemas'];
export type Health = Schemas['Health'];

/** While the page is visible, everything on it is read again each minute. */
const eachMinute = { refetchInterval: statsRefreshMs, staleTime: statsRefreshMs / 2 };

export const useHealth = () => useQuery({ queryKey: ['health'], queryFn: readHealth, ...eachMinute });

/** A service that is down answers with 503 and the same body. */
async function readHealth({ signal }: { readonly signal: AbortSignal }): Promise<Health> {
  const { data, error, response } = await api.GET('/v1/health', { signal });
  const health = data ?? error;
  if (health === undefined || !('checks' in health)) throw ApiError.ofResponse(response, health);
  return health;
}

export const useSummary = () =>
  useQuery({
    queryKey: ['logs-summary'],
    queryFn: ({ signal }) => call(api.GET('/v1/logs/summary', { signal })),
    ...eachMinute,
  });

export const useServers = () =>
  useQuery({
    queryKey: ['servers'],
    queryFn: ({ signal }) => call(api.GET('/v1/servers', { signal })),
    staleTime: Infinity,
  });

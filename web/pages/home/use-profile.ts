import { useQuery } from '@tanstack/preact-query';
import type { components } from '../../generated/api.d.ts';
import { api, call } from '../../lib/api.ts';

export type Profile = components['schemas']['UserBalance'];

const refreshMs = 15_000;

/** What an account has now, and what it used in the last hour. */
export const useProfile = (accountId: number) =>
  useQuery({
    queryKey: ['profile', accountId],
    queryFn: ({ signal }) => call(api.GET('/v1/users/profile', { headers: headersFor(accountId), signal })),
    refetchInterval: refreshMs,
  });

/** For operations of a key that a session uses. */
export const headersFor = (accountId: number) => ({ 'x-api-account': String(accountId) });

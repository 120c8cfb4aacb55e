import { useQuery } from '@tanstack/preact-query';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { useConsoleSession } from '../../admin/session.ts';

export type Overview = Schema<'Overview'>;
export type Part = Overview['unavailable'][number];

const pollMs = 5_000;

/** Reads the overview again every few seconds while the page can be seen. It is all that the page asks for. */
export function useOverview() {
  const { status } = useConsoleSession();
  return useQuery({
    queryKey: ['overview'],
    queryFn: ({ signal }) => call(adminApi.GET('/v1/admin/overview', { signal })),
    refetchInterval: pollMs,
    staleTime: pollMs,
    // The next poll is the next try. Without a session, there is none until somebody has signed in again.
    retry: false,
    enabled: status === 'active',
  });
}

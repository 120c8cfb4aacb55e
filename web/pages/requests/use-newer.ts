import { useQuery } from '@tanstack/preact-query';
import { readLog, type RequestRow } from './read-log.ts';
import { isOpenEnded, selectAt, type RequestFilter } from './request-filter.ts';

export const refreshMs = 5_000;

/** Requests are listed when they have ended: one may have begun this long before the newest one of the list. */
const longestMs = 10 * 60_000;

const readMs = (row: RequestRow | undefined): number => Date.parse(row?.created_at ?? '');

/** Returns how many requests of the filter have ended since the rows were read. */
export function useNewer({
  accountId,
  filter,
  rows,
  isFirstPage,
}: {
  readonly accountId: number;
  readonly filter: RequestFilter;
  readonly rows: readonly RequestRow[];
  readonly isFirstPage: boolean;
}): number {
  const sinceMs = Math.max(readMs(rows[0]) - longestMs, readMs(rows.at(-1)));
  const { data } = useQuery({
    queryKey: ['newer-requests', accountId, filter, sinceMs],
    queryFn: async ({ signal }) => {
      const selection = selectAt(filter, Date.now());
      const ownMs = Date.parse(selection.since ?? '') || 0;
      const since = new Date(Math.max(ownMs, sinceMs)).toISOString();
      return (await readLog(accountId, { ...selection, since }, signal)).items;
    },
    enabled: isFirstPage && rows.length > 0 && isOpenEnded(filter),
    refetchInterval: refreshMs,
    // What is shown was read just now.
    initialData: [] as RequestRow[],
    staleTime: refreshMs,
    gcTime: 0,
  });
  const known = new Set(rows.map(({ request_id: id }) => id));
  return data.filter(({ request_id: id }) => !known.has(id)).length;
}

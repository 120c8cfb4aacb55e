import { useInfiniteQuery, type QueryKey } from '@tanstack/preact-query';
import type { ComponentChildren } from 'preact';
import { Button } from '../ui/button.tsx';
import { EmptyState, ErrorState, ErrorText, Skeleton } from '../ui/states.tsx';
import { useConsole } from './texts.ts';

/** A page of a list of the admin API. */
export interface CursorPage<Row> {
  readonly data: readonly Row[];
  readonly has_more: boolean;
  readonly last_id: string | null;
}

export interface CursorList<Row, Page = unknown> {
  /** Undefined until they were read. */
  readonly rows: readonly Row[] | undefined;
  /** What the API says beside the rows, such as a total. */
  readonly firstPage: Page | undefined;
  readonly error: unknown;
  readonly hasMore: boolean;
  readonly isFetching: boolean;
  readonly isFetchingMore: boolean;
  readonly fetchMore: () => unknown;
  readonly refetch: () => unknown;
}

/**
 * Reads a list page by page, as far as somebody wants to see it. It is read again when it is looked at again.
 * @param key what the list depends on, such as its filters
 * @param load reads a page; `after` is null for the first one
 */
export function useCursorList<Page extends CursorPage<unknown>>(
  key: QueryKey,
  load: (after: string | null, signal: AbortSignal) => Promise<Page>,
): CursorList<Page['data'][number], Page> {
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => load(pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page: Page) => (page.has_more ? page.last_id : undefined),
  });
  return {
    rows: query.data?.pages.flatMap((page): readonly Page['data'][number][] => page.data),
    firstPage: query.data?.pages[0],
    error: query.error,
    hasMore: query.hasNextPage,
    isFetching: query.isFetching,
    isFetchingMore: query.isFetchingNextPage,
    fetchMore: query.fetchNextPage,
    refetch: query.refetch,
  };
}

/** Shows a list that is read page by page, with a button for the next page. */
export function CursorListView<Row>({
  list,
  empty,
  children,
}: {
  readonly list: CursorList<Row>;
  /** What to see if there are no rows. */
  readonly empty?: ComponentChildren;
  readonly children: (rows: readonly Row[]) => ComponentChildren;
}) {
  const t = useConsole();
  const { rows, error, hasMore, isFetchingMore } = list;
  if (rows === undefined)
    return error === null ? (
      <Skeleton lines={10} height="2rem" />
    ) : (
      <ErrorState error={error} onRetry={list.refetch} />
    );
  // A page of a search may have no rows although there are more.
  if (rows.length === 0 && !hasMore) return <>{empty ?? <EmptyState title={t('nothing')} />}</>;
  return (
    <>
      {rows.length > 0 && children(rows)}
      <div class="console-more">
        {hasMore && (
          <Button busy={isFetchingMore} onClick={() => list.fetchMore()}>
            {t('more')}
          </Button>
        )}
        <span role="status">{t('shown', { count: rows.length })}</span>
        <ErrorText error={error} />
      </div>
    </>
  );
}

import { keepPreviousData, useQuery } from '@tanstack/preact-query';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import type { ApiAccount } from '../../lib/accounts.ts';
import { sendRequest } from '../../lib/api.ts';
import { useMessages } from '../../lib/language.tsx';
import { readCsv } from '../../lib/read-csv.ts';
import { Button } from '../../ui/button.tsx';
import { CsvMenu } from '../../ui/csv-menu.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Pagination } from '../../ui/pagination.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { SiteLink } from '../../frame/site-link.tsx';
import { Filters } from './filters.tsx';
import type en from './messages.en.ts';
import { readLog, type RequestPage } from './read-log.ts';
import { RequestDialog } from './request-dialog.tsx';
import { beginsTooEarly, selectAt, useRequestFilter, type Selection } from './request-filter.ts';
import { RequestTable } from './request-table.tsx';
import { Totals } from './totals.tsx';
import { refreshMs, useNewer } from './use-newer.ts';

/** A page of the log, and what selected it: a file has the same. */
interface LogPage {
  readonly selection: Selection;
  readonly log: RequestPage;
}

/** The requests of the last 72 hours that the filters select, with their sums. */
export function RequestLog({ account }: { readonly account: ApiAccount }) {
  const { filter, page, openId } = useRequestFilter();
  const query = useQuery({
    queryKey: ['request-logs', account.id, filter, page],
    queryFn: async ({ signal }): Promise<LogPage> => {
      const selection = selectAt(filter, Date.now());
      return { selection, log: await readLog(account.id, { ...selection, page }, signal) };
    },
    placeholderData: keepPreviousData,
    // What is shown stays in its place: newer requests are offered instead.
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    refetchInterval: ({ state }) => (state.data?.log.items.length === 0 ? refreshMs : false),
  });
  const rows = query.data?.log.items ?? [];
  return (
    <>
      <Filters />
      <EarlierDays />
      <section class="card" aria-busy={query.isPlaceholderData}>
        <QueryView query={query} loading={<LoadingLog />}>
          {({ selection, log }) => (
            <LoadedLog account={account} log={log} selection={selection}>
              <NewerButton
                account={account}
                rows={rows}
                isBusy={query.isFetching}
                onShow={() => query.refetch()}
              />
            </LoadedLog>
          )}
        </QueryView>
      </section>
      {openId !== '' && <RequestDialog account={account} id={openId} rows={rows} />}
    </>
  );
}

const LoadingLog = () => (
  <div class="requests-log">
    <Skeleton lines={1} height="4.5rem" />
    <Skeleton lines={10} height="2rem" />
  </div>
);

function LoadedLog({
  account,
  log: { items, totals, total_pages: pages, has_exact_total: isExact },
  selection,
  children,
}: {
  readonly account: ApiAccount;
  readonly log: RequestPage;
  readonly selection: Selection;
  readonly children: ComponentChildren;
}) {
  const t = useMessages<typeof en>();
  const { filter, page, setPage } = useRequestFilter();
  const top = useRef<HTMLDivElement>(null);
  const turnTo = (next: number): void => {
    setPage(next);
    top.current?.scrollIntoView();
  };
  return (
    <div class="requests-log" ref={top}>
      <div class="requests-totals">
        <Totals totals={totals} isExact={isExact} />
        <div class="requests-actions">
          {children}
          <CsvMenu
            name="requests"
            read={() => readCsv(sendRequest, `/v1/web/api-accounts/${account.id}/request-logs`, selection)}
            isEmpty={items.length === 0}
          />
        </div>
      </div>
      {filter.outcome === 'rejected' && <p class="soft small">{t('rejectedOnly')}</p>}
      {items.length === 0 ? <Nothing /> : <RequestTable rows={items} />}
      <Pagination page={Math.min(page, Math.max(pages, 1))} pages={pages} onChange={turnTo} />
    </div>
  );
}

/** Offers what has ended since the list was read, so that nobody loses their place in it. */
function NewerButton({
  account,
  rows,
  isBusy,
  onShow,
}: {
  readonly account: ApiAccount;
  readonly rows: RequestPage['items'];
  readonly isBusy: boolean;
  readonly onShow: () => unknown;
}) {
  const t = useMessages<typeof en>();
  const { filter, page } = useRequestFilter();
  const count = useNewer({ accountId: account.id, filter, rows, isFirstPage: page === 1 });
  return (
    <span role="status">
      {count > 0 && (
        <Button icon="refresh" busy={isBusy} onClick={() => onShow()}>
          {t('newer', { count })}
        </Button>
      )}
    </span>
  );
}

/** For a period that begins before single requests were kept. */
function EarlierDays() {
  const t = useMessages<typeof en>();
  const { filter } = useRequestFilter();
  if (!beginsTooEarly(filter)) return null;
  return (
    <Notice title={t('tooEarly')}>
      <p>
        {t.nodes('tooEarlyText', {
          days: (
            <SiteLink key="days" href="/requests?view=days">
              {t('toDays')}
            </SiteLink>
          ),
        })}
      </p>
    </Notice>
  );
}

function Nothing() {
  const t = useMessages<typeof en>();
  const { filter, isFiltered, clear } = useRequestFilter();
  if (!isFiltered)
    return (
      <EmptyState
        title={t('nothingYet')}
        action={
          <a class="button secondary medium" href="/docs">
            {t('toDocs')}
          </a>
        }
      >
        {t('nothingYetText')}
      </EmptyState>
    );
  return (
    <EmptyState title={t('nothingFound')} action={<Button onClick={clear}>{t('clear')}</Button>}>
      {t(filter.requestId === '' ? 'nothingFoundText' : 'noSuchRequest')}
    </EmptyState>
  );
}

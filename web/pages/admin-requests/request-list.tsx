import { sendAdminRequest } from '../../admin/api.ts';
import { CursorListView } from '../../admin/cursor-list.tsx';
import { RequestTable } from '../../admin/request-table.tsx';
import { useMessages } from '../../lib/language.tsx';
import { lazy } from '../../lib/lazy.tsx';
import { readCsv } from '../../lib/read-csv.ts';
import { Button } from '../../ui/button.tsx';
import { CsvMenu } from '../../ui/csv-menu.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Filters } from './filters.tsx';
import type en from './messages.en.ts';
import { useRequestFilter } from './request-filter.ts';
import { useRequests } from './use-requests.ts';

const RequestDialog = lazy(
  async () => (await import('./request-dialog.tsx')).RequestDialog,
  () => null,
);

/** The requests that the address selects, and over them the one that is open. */
export function RequestList() {
  const t = useMessages<typeof en>();
  const { filter, openId, hrefOf } = useRequestFilter();
  const list = useRequests(filter);
  const { rows = [], firstPage } = list;
  return (
    <>
      <Filters />
      <section class="card admin-requests-list" aria-busy={list.isFetching}>
        <div class="admin-requests-list-head">
          <p class="admin-requests-total" role="status">
            {firstPage !== undefined && <Total page={firstPage} />}
          </p>
          <CsvMenu
            name="requests"
            read={() => readCsv(sendAdminRequest, '/v1/admin/requests', { ...firstPage?.selection })}
            isEmpty={rows.length === 0}
          />
        </div>
        {filter.outcome === 'rejected' && <p class="soft small">{t('rejectedOnly')}</p>}
        <CursorListView list={list} empty={<Nothing />}>
          {(shown) => <RequestTable rows={shown} hrefOf={hrefOf} />}
        </CursorListView>
      </section>
      {openId !== '' && <RequestDialog id={openId} list={list} />}
    </>
  );
}

function Total({
  page: { total, has_exact_total: isExact },
}: {
  readonly page: { readonly total: number | null; readonly has_exact_total: boolean };
}) {
  const t = useMessages<typeof en>();
  if (total === null) return null;
  return <>{t(isExact ? 'total_exact' : 'total_more', { count: total })}</>;
}

function Nothing() {
  const t = useMessages<typeof en>();
  const { isFiltered, clear } = useRequestFilter();
  if (!isFiltered) return <EmptyState title={t('nothingYet')}>{t('nothingYetText')}</EmptyState>;
  return (
    <EmptyState title={t('nothingFound')} action={<Button onClick={clear}>{t('clear')}</Button>}>
      {t('nothingFoundText')}
    </EmptyState>
  );
}

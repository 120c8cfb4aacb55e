import './admin-requests.css';
import { sendAdminRequest } from '../../admin/api.ts';
import { CursorListView } from '../../admin/cursor-list.tsx';
import { RequestTable } from '../../admin/request-table.tsx';
import { useConsole } from '../../admin/texts.ts';
import { useMessages } from '../../lib/language.tsx';
import { readCsv } from '../../lib/read-csv.ts';
import { Button } from '../../ui/button.tsx';
import { CsvMenu } from '../../ui/csv-menu.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Filters } from './filters.tsx';
import type en from './messages.en.ts';
import { RequestDialog } from './request-dialog.tsx';
import { useRequestFilter } from './request-filter.ts';
import { useRequests } from './use-requests.ts';

export default function AdminRequestsPage() {
  const t = useMessages<typeof en>();
  const common = useConsole();
  const { filter, openId, hrefOf } = useRequestFilter();
  const list = useRequests(filter);
  const { rows = [], firstPage } = list;
  return (
    <div class="page admin-requests">
      <div class="page-head">
        <h1>{t('title')}</h1>
        <div class="console-buttons">
          <Button icon="refresh" busy={list.isFetching} onClick={() => list.refetch()}>
            {common('refresh')}
          </Button>
          <CsvMenu
            name="requests"
            read={() => readCsv(sendAdminRequest, '/v1/admin/requests', { ...firstPage?.selection })}
            isEmpty={rows.length === 0}
          />
        </div>
      </div>
      <Filters />
      <section class="card admin-requests-list" aria-busy={list.isFetching}>
        <p class="admin-requests-total" role="status">
          {firstPage !== undefined && <Total page={firstPage} />}
        </p>
        <CursorListView list={list} empty={<Nothing />}>
          {(shown) => <RequestTable rows={shown} hrefOf={hrefOf} />}
        </CursorListView>
      </section>
      {openId !== '' && <RequestDialog id={openId} list={list} />}
    </div>
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

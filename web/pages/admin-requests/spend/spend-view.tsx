import { useQuery } from '@tanstack/preact-query';
import { sendAdminRequest } from '../../../admin/api.ts';
import { CostChart } from '../../../admin/spend/cost-chart.tsx';
import { SpendStats } from '../../../admin/spend/spend-stats.tsx';
import { listDays, readSpend } from '../../../admin/spend/spend.ts';
import { useMessages } from '../../../lib/language.tsx';
import { readCsv } from '../../../lib/read-csv.ts';
import { CsvMenu } from '../../../ui/csv-menu.tsx';
import { EmptyState, QueryView, Skeleton } from '../../../ui/states.tsx';
import type en from '../messages.en.ts';
import { toSelection, useSpendFilter, type SpendFilter } from './spend-filter.ts';
import { SpendFilters } from './spend-filters.tsx';
import { SpendTable } from './spend-table.tsx';

/** More rows are not shown. */
const maxRows = 200;

/** What requests of all accounts cost, summed by what the address says. */
export function SpendView() {
  const { filter } = useSpendFilter();
  const sums = useSums(filter);
  return (
    <>
      <SpendFilters />
      <section class="card">
        <SpendStats sums={sums.data?.total ?? null} />
        <Days filter={filter} />
      </section>
      <Rows filter={filter} query={sums} />
    </>
  );
}

/** Reads the first rows in the order of the address, and what all rows add up to. */
function useSums(filter: SpendFilter) {
  const { sort, order } = filter;
  const selection = toSelection(filter);
  return useQuery({
    queryKey: ['spend', selection, sort, order],
    queryFn: async ({ signal }) => ({
      filter,
      ...(await readSpend({ ...selection, limit: maxRows, sort, order }, signal)),
    }),
    // What was shown stays until the other order has come.
    placeholderData: (previous) => previous,
  });
}

/** What was paid on each day. */
function Days({ filter }: { readonly filter: SpendFilter }) {
  const t = useMessages<typeof en>();
  const { since, until } = filter;
  const selection = { ...toSelection(filter), by: 'day' };
  const query = useQuery({
    queryKey: ['spend-days', selection],
    queryFn: async ({ signal }) => ({
      days: listDays(since, until),
      rows: (await readSpend(selection, signal)).data,
    }),
    placeholderData: (previous) => previous,
  });
  return (
    <div>
      <h2 class="admin-requests-subtitle">{t('paidByDay')}</h2>
      <QueryView query={query} loading={<Skeleton lines={1} height="14rem" />}>
        {({ days, rows }) => <CostChart title={t('paidByDay')} days={days} rows={rows} />}
      </QueryView>
    </div>
  );
}

function Rows({
  filter,
  query,
}: {
  readonly filter: SpendFilter;
  readonly query: ReturnType<typeof useSums>;
}) {
  const t = useMessages<typeof en>();
  const { data } = query;
  const count = data?.total?.rows ?? 0;
  const isOfUpstreams = filter.by.includes('upstream') || filter.upstream !== '';
  return (
    <section class="card admin-requests-list" aria-busy={query.isFetching}>
      <div class="admin-requests-list-head">
        <p class="admin-requests-total" role="status">
          {data !== undefined &&
            (count > maxRows ? t('rows_first', { shown: maxRows, count }) : t('rows_all', { count }))}
        </p>
        <CsvMenu
          name="spend"
          read={() => readCsv(sendAdminRequest, '/v1/admin/spend', toSelection(filter))}
          isEmpty={count === 0}
        />
      </div>
      <p class="small soft">{t(isOfUpstreams ? 'sumsOfUpstreams' : 'sumsOfDays')}</p>
      <QueryView query={query} loading={<Skeleton lines={10} height="2.5rem" />}>
        {({ data: rows, total, filter: shown }) =>
          total === undefined || rows.length === 0 ? (
            <EmptyState title={t('noSpend')}>{t('noSpendText')}</EmptyState>
          ) : (
            <SpendTable rows={rows} total={total} filter={shown} />
          )
        }
      </QueryView>
    </section>
  );
}

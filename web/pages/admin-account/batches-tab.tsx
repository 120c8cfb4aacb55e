import { adminApi, call, type Schema } from '../../admin/api.ts';
import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { BatchLink } from '../../admin/links.tsx';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { FilterSelect } from '../../ui/filter-select.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { BatchBadge } from '../jobs/shared/status.tsx';
import { countRun } from '../jobs/shared/work.ts';
import type en from './messages.en.ts';

type Batch = Schema<'AdminBatchRow'>;
type Status = Batch['status'];

/** Those that the list has only if they are asked for. */
const statuses = ['completed', 'failed', 'expired', 'cancelled'] as const satisfies readonly Status[];

/** Its batches: those that run, or those that ended in one way. */
export function BatchesTab({ accountId }: { readonly accountId: string }) {
  const t = useMessages<typeof en>();
  const columns = useColumns();
  const [filters, change] = useAddressFilters();
  const status = statuses.find((one) => one === filters.get('status'));
  const list = useCursorList(['account-batches', accountId, status ?? null], (after, signal) =>
    call(
      adminApi.GET('/v1/admin/batches', {
        params: {
          query: {
            account: accountId,
            limit: 20,
            ...(status === undefined ? {} : { status }),
            ...(after === null ? {} : { after }),
          },
        },
        signal,
      }),
    ),
  );
  return (
    <>
      <div class="admin-account-filter">
        <FilterSelect
          label={t('state')}
          anyLabel={t('unfinished')}
          choices={statuses.map((value) => ({ value, label: t(value) }))}
          value={status ?? ''}
          onChoose={(value) => change({ status: value })}
        />
      </div>
      <CursorListView
        list={list}
        empty={
          status === undefined ? (
            <EmptyState title={t('noBatches')}>{t('noBatchesText')}</EmptyState>
          ) : (
            <EmptyState title={t('noSuchBatches')} />
          )
        }
      >
        {(rows) => <Table caption={t('tab_batches')} columns={columns} rows={rows} keyOf={({ id }) => id} />}
      </CursorListView>
    </>
  );
}

function useColumns(): readonly Column<Batch>[] {
  const t = useMessages<typeof en>();
  return [
    { name: t('batch'), isHeader: true, render: ({ id }) => <BatchLink id={id} /> },
    { name: t('created'), render: ({ created_at: at }) => <Time value={at} style="recent" /> },
    { name: t('state'), render: (batch) => <BatchBadge batch={toCounted(batch)} /> },
    {
      name: t('model'),
      isMinor: true,
      render: ({ model }) => <span class="admin-account-model">{model}</span>,
    },
    { name: t('batchLines'), isNumber: true, isMinor: true, render: (batch) => <Lines batch={batch} /> },
    { name: t('cost'), isNumber: true, render: ({ cost }) => <Money value={cost} /> },
  ];
}

const toCounted = ({
  status,
  lines_total: total,
  lines_done: done,
  lines_failed: failed,
  lines_not_run,
  eta_seconds,
}: Batch) => ({
  status,
  eta_seconds,
  lines_not_run,
  request_counts: { total, completed: done - failed, failed },
});

function Lines({ batch }: { readonly batch: Batch }) {
  const { lines_total: total, lines_not_run: notRun } = batch;
  const { done, failed } = countRun(toCounted(batch));
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (
    <>
      {t('linesOf', { done: format.number(done), total: format.number(total) })}
      {failed > 0 && <span class="admin-account-failed"> · {t('linesFailed', { count: failed })}</span>}
      {notRun > 0 && <> · {t('linesNotRun', { count: notRun })}</>}
    </>
  );
}

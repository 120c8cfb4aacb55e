import { adminApi, call } from '../../admin/api.ts';
import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { AccountLink } from '../../admin/links.tsx';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { Select } from '../../ui/field.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { BatchBadge, BatchProgress } from '../jobs/shared/status.tsx';
import type en from './messages.en.ts';
import { nameOperation } from './name-operation.ts';
import { OpenWork } from './open-work.tsx';
import { countLines, type AdminBatchRow } from './read-work.ts';
import { WorkFilters } from './work-filters.tsx';

const statuses = [
  'validating',
  'in_progress',
  'finalizing',
  'completed',
  'failed',
  'expired',
  'cancelling',
  'cancelled',
] as const satisfies readonly AdminBatchRow['status'][];

/** The batches that have not ended, or those with one status; of all accounts, or of one. */
export function BatchList() {
  const t = useMessages<typeof en>();
  const [filters, change] = useAddressFilters();
  const account = filters.get('account');
  const status = statuses.find((one) => one === filters.get('status')) ?? null;
  const list = useCursorList(['batches', account, status], (after, signal) => {
    const query = {
      limit: 50,
      ...(account === null ? {} : { account }),
      ...(status === null ? {} : { status }),
      ...(after === null ? {} : { after }),
    };
    return call(adminApi.GET('/v1/admin/batches', { params: { query }, signal }));
  });
  return (
    <div class="admin-work-list">
      <WorkFilters kind="batch">
        <Select
          label={t('status')}
          value={status ?? ''}
          choices={[
            { value: '', label: t('notEnded') },
            ...statuses.map((value) => ({ value, label: t(value) })),
          ]}
          onChoose={(value) => change({ status: value === '' ? null : value })}
        />
      </WorkFilters>
      <section class="card">
        <CursorListView
          list={list}
          empty={<EmptyState title={t('noBatches')}>{t('noBatchesText')}</EmptyState>}
        >
          {(rows) => <BatchTable rows={rows} />}
        </CursorListView>
      </section>
    </div>
  );
}

function BatchTable({ rows }: { readonly rows: readonly AdminBatchRow[] }) {
  const t = useMessages<typeof en>();
  return (
    <Table
      caption={t('batches')}
      keyOf={({ id }) => id}
      rows={rows}
      columns={[
        { name: t('batch'), isHeader: true, render: ({ id }) => <OpenWork kind="batch" id={id} /> },
        { name: t('status'), render: (row) => <BatchBadge batch={countLines(row)} /> },
        {
          name: t('lines'),
          render: (row) => (
            <div class="admin-work-progress">
              <BatchProgress batch={countLines(row)} />
            </div>
          ),
        },
        {
          name: t('account'),
          render: ({ account, account_name: name }) => <AccountLink id={account} name={name} />,
        },
        {
          name: t('model'),
          isMinor: true,
          render: ({ model, endpoint }) => (model === '' ? nameOperation(t, endpoint) : model),
        },
        {
          name: t('created'),
          isMinor: true,
          render: ({ created_at: time }) => <Time value={time} style="ago" />,
        },
        { name: t('cost'), isNumber: true, render: ({ cost }) => <Money value={cost} /> },
        {
          name: t('reserved'),
          isNumber: true,
          isMinor: true,
          render: ({ reserved }) => <Money value={reserved} />,
        },
      ]}
    />
  );
}

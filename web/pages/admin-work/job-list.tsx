import { adminApi, call } from '../../admin/api.ts';
import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { AccountLink } from '../../admin/links.tsx';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { Select } from '../../ui/field.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { JobBadge } from '../jobs/shared/status.tsx';
import { jobStatuses } from '../jobs/shared/work.ts';
import type en from './messages.en.ts';
import { OpenWork } from './open-work.tsx';
import { nameOperation } from './name-operation.ts';
import type { AdminJob } from './read-work.ts';
import { WorkFilters } from './work-filters.tsx';

type Status = AdminJob['status'];

/** Those of all accounts are listed by status. */
const defaultStatus: Status = 'queued';

/** Durable jobs: those of an account, or those of all with one status. */
export function JobList() {
  const t = useMessages<typeof en>();
  const [filters, change] = useAddressFilters();
  const account = filters.get('account');
  const chosen = jobStatuses.find((one) => one === filters.get('status')) ?? null;
  const status = chosen ?? (account === null ? defaultStatus : null);
  return (
    <div class="admin-work-list">
      <WorkFilters kind="job">
        <Select
          label={t('status')}
          value={status ?? ''}
          choices={[
            ...(account === null ? [] : [{ value: '', label: t('anyStatus') } as const]),
            ...jobStatuses.map((value) => ({ value, label: t(value) })),
          ]}
          onChoose={(value) => change({ status: value === '' ? null : value })}
        />
      </WorkFilters>
      <section class="card">
        <Jobs account={account} status={status} />
      </section>
    </div>
  );
}

function Jobs({ account, status }: { readonly account: string | null; readonly status: Status | null }) {
  const t = useMessages<typeof en>();
  const list = useCursorList(['jobs', account, status], (after, signal) => {
    const query = {
      limit: 50,
      ...(account === null ? {} : { account }),
      ...(status === null ? {} : { status }),
      ...(after === null ? {} : { after }),
    };
    return call(adminApi.GET('/v1/admin/jobs', { params: { query }, signal }));
  });
  const empty = (
    <EmptyState title={t('noJobs')}>
      {t.nodes('noJobsText', { header: <code>Prefer: respond-async</code> })}
    </EmptyState>
  );
  return (
    <CursorListView list={list} empty={empty}>
      {(rows) => <JobTable rows={rows} />}
    </CursorListView>
  );
}

function JobTable({ rows }: { readonly rows: readonly AdminJob[] }) {
  const t = useMessages<typeof en>();
  return (
    <Table
      caption={t('jobs')}
      keyOf={({ id }) => id}
      rows={rows}
      columns={[
        { name: t('job'), isHeader: true, render: ({ id }) => <OpenWork kind="job" id={id} /> },
        { name: t('status'), render: (job) => <JobBadge job={job} /> },
        {
          name: t('account'),
          render: ({ account, account_name: name }) => <AccountLink id={account} name={name} />,
        },
        { name: t('created'), render: ({ created_at: time }) => <Time value={time} /> },
        { name: t('model'), render: ({ model }) => model },
        { name: t('operation'), isMinor: true, render: ({ operation }) => nameOperation(t, operation) },
        { name: t('error'), render: ({ error_code: code }) => code !== null && <code>{code}</code> },
        { name: t('attempts'), isNumber: true, isMinor: true, render: ({ attempts }) => attempts },
        { name: t('cost'), isNumber: true, render: ({ cost }) => cost !== null && <Money value={cost} /> },
      ]}
    />
  );
}

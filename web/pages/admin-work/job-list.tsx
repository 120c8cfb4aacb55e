import { adminApi, call } from '../../admin/api.ts';
import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { JobBadge } from '../jobs/shared/status.tsx';
import type en from './messages.en.ts';
import { OpenWork } from './open-work.tsx';
import { nameOperation } from './name-operation.ts';
import type { AdminJob } from './read-work.ts';
import { WorkFilters } from './work-filters.tsx';

/** The durable jobs of an account. */
export function JobList() {
  const t = useMessages<typeof en>();
  const [filters] = useAddressFilters();
  const account = filters.get('account');
  return (
    <div class="admin-work-list">
      <WorkFilters kind="job" />
      <section class="card">
        {account === null ? (
          <EmptyState title={t('jobsOfAccount')}>{t('jobsOfAccountText')}</EmptyState>
        ) : (
          <JobsOf account={account} />
        )}
      </section>
    </div>
  );
}

function JobsOf({ account }: { readonly account: string }) {
  const t = useMessages<typeof en>();
  const list = useCursorList(['jobs', account], (after, signal) =>
    call(
      adminApi.GET('/v1/admin/jobs', {
        params: { query: { account, limit: 50, ...(after === null ? {} : { after }) } },
        signal,
      }),
    ),
  );
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

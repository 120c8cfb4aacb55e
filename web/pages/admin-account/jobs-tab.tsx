import { adminApi, call, type Schema } from '../../admin/api.ts';
import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { JobLink } from '../../admin/links.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { JobBadge } from '../jobs/shared/status.tsx';
import type en from './messages.en.ts';

type Job = Schema<'AdminJob'>;

/** Its durable jobs, newest first. */
export function JobsTab({ accountId }: { readonly accountId: string }) {
  const t = useMessages<typeof en>();
  const columns = useColumns();
  const list = useCursorList(['account-jobs', accountId], (after, signal) =>
    call(
      adminApi.GET('/v1/admin/jobs', {
        params: { query: { account: accountId, limit: 20, ...(after === null ? {} : { after }) } },
        signal,
      }),
    ),
  );
  return (
    <CursorListView list={list} empty={<EmptyState title={t('noJobs')}>{t('noJobsText')}</EmptyState>}>
      {(rows) => <Table caption={t('tab_jobs')} columns={columns} rows={rows} keyOf={({ id }) => id} />}
    </CursorListView>
  );
}

function useColumns(): readonly Column<Job>[] {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return [
    { name: t('job'), isHeader: true, render: ({ id }) => <JobLink id={id} /> },
    { name: t('created'), render: ({ created_at: at }) => <Time value={at} style="recent" /> },
    { name: t('state'), render: (job) => <JobState job={job} /> },
    {
      name: t('model'),
      isMinor: true,
      render: ({ model }) => <span class="admin-account-model">{model}</span>,
    },
    {
      name: t('duration'),
      isNumber: true,
      isMinor: true,
      render: (job) => writeDuration(job, format.duration),
    },
    {
      name: t('cost'),
      isNumber: true,
      render: ({ cost }) => (cost === null ? '–' : <Money value={cost} />),
    },
  ];
}

/** How long it ran, or runs. */
function writeDuration(
  { started_at: start, ended_at: end }: Job,
  write: (seconds: number) => string,
): string {
  if (start === null) return '–';
  const endMs = end === null ? Date.now() : Date.parse(end);
  return write(Math.max(0, (endMs - Date.parse(start)) / 1_000));
}

function JobState({ job }: { readonly job: Job }) {
  return (
    <span class="admin-account-state">
      <JobBadge job={job} />
      {job.error_code !== null && (
        <span class="soft small" title={job.error_message ?? undefined}>
          {job.error_code}
        </span>
      )}
    </span>
  );
}

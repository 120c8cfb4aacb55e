import { consoleQueries } from '../../admin/api.ts';
import { RefreshButton } from '../../admin/refresh-button.tsx';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { lazy } from '../../lib/lazy.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Skeleton } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import '../jobs/shared/work.css';
import './admin-work.css';
import type en from './messages.en.ts';
import { QueueList } from './queue-list.tsx';
import { queueNames } from './read-work.ts';

const nothing = () => null;
const loading = () => <Skeleton lines={10} height="2rem" />;
const JobList = lazy(async () => (await import('./job-list.tsx')).JobList, loading);
const BatchList = lazy(async () => (await import('./batch-list.tsx')).BatchList, loading);
const JobDialog = lazy(async () => (await import('./job-dialog.tsx')).JobDialog, nothing);
const BatchDialog = lazy(async () => (await import('./batch-dialog.tsx')).BatchDialog, nothing);
const FailedJobs = lazy(async () => (await import('./failed-jobs.tsx')).FailedJobs, nothing);

const tabs = ['queues', 'jobs', 'batches'] as const;
type TabName = (typeof tabs)[number];

export default function AdminWorkPage() {
  const t = useMessages<typeof en>();
  const [filters, change] = useAddressFilters();
  const [job, batch] = [filters.get('job'), filters.get('batch')];
  const failed = queueNames.find((name) => name === filters.get('failed'));
  const opened: TabName =
    failed !== undefined ? 'queues' : job !== null ? 'jobs' : batch !== null ? 'batches' : 'queues';
  const tab = tabs.find((name) => name === filters.get('tab')) ?? opened;
  const content = { queues: <QueueList />, jobs: <JobList />, batches: <BatchList /> };
  const close = (kind: 'job' | 'batch'): void => {
    change({ [kind]: null, tab: tab === 'queues' ? null : tab });
    // The dialog has followed it, and the list below has not.
    consoleQueries.invalidateQueries({ queryKey: [tab] }).catch(() => undefined);
  };
  return (
    <div class="page admin-work">
      <div class="page-head">
        <h1>{t('title')}</h1>
        <div class="admin-work-actions">
          <a class="button quiet medium" href="/admin/queues">
            {t('toBoard')} <Icon name="external" size={16} />
          </a>
          <RefreshButton />
        </div>
      </div>
      <Tabs<TabName>
        label={t('title')}
        value={tab}
        onChange={(value) => change({ tab: value === 'queues' ? null : value, status: null })}
        list={tabs.map((value) => ({ value, label: t(value), content: content[value] }))}
      />
      {failed !== undefined && <FailedJobs queue={failed} onClose={() => change({ failed: null })} />}
      {job !== null && <JobDialog id={job} onClose={() => close('job')} />}
      {batch !== null && (
        <BatchDialog id={batch} onOpen={(id) => change({ batch: id, tab })} onClose={() => close('batch')} />
      )}
    </div>
  );
}

import { useSearchParams } from 'wouter-preact';
import { NoAccount } from '../../frame/no-account.tsx';
import { useAccounts } from '../../lib/accounts.ts';
import { useMessages } from '../../lib/language.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import { BatchList } from './batch-list.tsx';
import { JobList } from './job-list.tsx';
import type en from './messages.en.ts';
import { NewBatch } from './new-batch.tsx';
import './shared/work.css';
import './jobs.css';

type TabName = 'jobs' | 'batches';

export default function JobsPage() {
  const t = useMessages<typeof en>();
  const { query } = useAccounts();
  return (
    <div class="page jobs">
      <header class="page-head">
        <div>
          <h1>{t('jobsAndBatches')}</h1>
          <p>{t('intro')}</p>
        </div>
      </header>
      <QueryView query={query} loading={<Skeleton lines={8} />}>
        {(accounts) =>
          accounts.length === 0 ? (
            <section class="card">
              <NoAccount title={t('noAccountTitle')} action={t('toKeys')}>
                {t('noAccountText')}
              </NoAccount>
            </section>
          ) : (
            <Lists />
          )
        }
      </QueryView>
    </div>
  );
}

function Lists() {
  const t = useMessages<typeof en>();
  const [search, setSearch] = useSearchParams();
  const tab: TabName = search.get('tab') === 'batches' || search.has('file') ? 'batches' : 'jobs';
  return (
    <Tabs
      label={t('jobsAndBatches')}
      value={tab}
      onChange={(next) => setSearch(next === 'jobs' ? {} : { tab: next })}
      list={[
        { value: 'jobs', label: t('jobs'), content: <JobList /> },
        {
          value: 'batches',
          label: t('batches'),
          content: (
            <div class="jobs-batches">
              <NewBatch />
              {!search.has('file') && <BatchList />}
            </div>
          ),
        },
      ]}
    />
  );
}

import { useEffect } from 'preact/hooks';
import { SiteLink } from '../../frame/site-link.tsx';
import { refreshAccounts } from '../../lib/accounts.ts';
import { api, call } from '../../lib/api.ts';
import { useFollowed } from '../../lib/follow.ts';
import { useMessages } from '../../lib/language.tsx';
import { Notice } from '../../ui/notice.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import { BatchBadge, BatchProgress } from '../jobs/shared/status.tsx';
import { hasBatchEnded, type Batch } from '../jobs/shared/work.ts';
import { BatchActions } from './batch-actions.tsx';
import { BatchFacts } from './batch-facts.tsx';
import { BatchStats } from './batch-stats.tsx';
import { FailedLines } from './failed-lines.tsx';
import { FirstResults } from './first-results.tsx';
import { InputFaults } from './input-faults.tsx';
import type en from './messages.en.ts';
import '../jobs/shared/work.css';
import './batch.css';

export default function BatchPage({ id }: { readonly id: string }) {
  const t = useMessages<typeof en>();
  const query = useFollowed<Batch>({
    queryKey: ['batch', id],
    read: (signal) => call(api.GET('/v1/batches/{batch_id}', { params: { path: { batch_id: id } }, signal })),
    eventsPath: `/v1/batches/${encodeURIComponent(id)}/events`,
    hasEnded: hasBatchEnded,
  });
  const batch = query.data;
  const cost = batch?.cost;
  useEffect(() => {
    // The balance beside the name of the account.
    if (cost !== undefined && cost > 0) refreshAccounts().catch(() => undefined);
  }, [cost]);
  return (
    <div class="page batch">
      <SiteLink href="/jobs?tab=batches" class="work-back">
        {t('jobsAndBatches')}
      </SiteLink>
      <header class="page-head batch-head">
        <div class="work-title">
          <h1>{batch === undefined || batch.model === '' ? t('title') : batch.model}</h1>
          {batch !== undefined && <BatchBadge batch={batch} />}
        </div>
        {batch !== undefined && <BatchActions batch={batch} />}
      </header>
      <QueryView query={query} loading={<Skeleton lines={10} height="2rem" />}>
        {(found) => <BatchView batch={found} />}
      </QueryView>
    </div>
  );
}

function BatchView({ batch }: { readonly batch: Batch }) {
  const t = useMessages<typeof en>();
  return (
    <>
      {batch.errors !== null && <InputFaults faults={batch.errors.data} />}
      {(batch.status === 'cancelling' || batch.status === 'finalizing') && (
        <Notice title={t('stoppingTitle')}>
          <p class="small">{t('stoppingText')}</p>
        </Notice>
      )}
      <section class="card">
        <BatchProgress batch={batch} />
        <BatchStats batch={batch} />
        <p class="soft small batch-note">{hasBatchEnded(batch) ? '' : t('mayLeave')}</p>
      </section>
      <BatchFacts batch={batch} />
      <FailedLines batch={batch} />
      <FirstResults batch={batch} />
    </>
  );
}

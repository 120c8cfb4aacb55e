import { useQuery } from '@tanstack/preact-query';
import { SiteLink } from '../../frame/site-link.tsx';
import { api, call } from '../../lib/api.ts';
import { useMessages } from '../../lib/language.tsx';
import { Card } from '../../ui/card.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import { BatchBadge, BatchProgress, JobBadge, JobProgress } from '../jobs/shared/status.tsx';
import { hasBatchEnded, type Batch, type BatchEndpoint, type JobSummary } from '../jobs/shared/work.ts';
import '../jobs/shared/work.css';
import type en from './messages.en.ts';
import { headersFor } from './use-profile.ts';

const maxShown = 5;
/** How often it is read while something runs, and otherwise (ms). */
const busyPollMs = 4_000;
const idlePollMs = 20_000;

interface Work {
  readonly jobs: readonly JobSummary[];
  readonly batches: readonly Batch[];
  /** Jobs and batches that there are, shown or not. */
  readonly count: number;
}

async function readWork(accountId: number, signal: AbortSignal): Promise<Work> {
  const headers = headersFor(accountId);
  const readJobs = (status: 'active' | 'queued') =>
    call(api.GET('/v1/jobs', { params: { query: { status, page_size: maxShown } }, headers, signal }));
  const [active, queued, { data }] = await Promise.all([
    readJobs('active'),
    readJobs('queued'),
    call(api.GET('/v1/batches', { params: { query: { limit: 20 } }, headers, signal })),
  ]);
  const batches = data.filter((batch) => !hasBatchEnded(batch));
  return {
    jobs: [...active.items, ...queued.items].slice(0, maxShown),
    batches: batches.slice(0, maxShown),
    count: active.total_count + queued.total_count + batches.length,
  };
}

/** The jobs and batches that have not ended. */
export function RunningWork({ accountId }: { readonly accountId: number }) {
  const t = useMessages<typeof en>();
  const query = useQuery({
    queryKey: ['running-work', accountId],
    queryFn: ({ signal }) => readWork(accountId, signal),
    refetchInterval: ({ state }) => ((state.data?.count ?? 0) > 0 ? busyPollMs : idlePollMs),
  });
  return (
    <Card title={t('running')} actions={<SiteLink href="/jobs">{t('allJobs')}</SiteLink>}>
      <QueryView query={query} loading={<Skeleton lines={1} height="1.5rem" />}>
        {({ jobs, batches, count }) =>
          count === 0 ? (
            <p class="soft">{t('nothingRuns')}</p>
          ) : (
            <>
              <ul class="home-work">
                {batches.map((batch) => (
                  <li key={batch.id}>
                    <SiteLink href={`/batches/${batch.id}`}>
                      {batch.model === '' ? t(batch.endpoint as BatchEndpoint) : batch.model}
                    </SiteLink>
                    <BatchBadge batch={batch} />
                    <BatchProgress batch={batch} />
                  </li>
                ))}
                {jobs.map((job) => (
                  <li key={job.id}>
                    <SiteLink href={`/jobs/${job.id}`}>{job.model}</SiteLink>
                    <JobBadge job={job} />
                    <JobProgress job={job} />
                  </li>
                ))}
              </ul>
              {count > jobs.length + batches.length && (
                <p class="soft small">{t('moreWork', { count: count - jobs.length - batches.length })}</p>
              )}
            </>
          )
        }
      </QueryView>
    </Card>
  );
}

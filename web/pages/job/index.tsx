import { SiteLink } from '../../frame/site-link.tsx';
import { api, call } from '../../lib/api.ts';
import { useFollowed } from '../../lib/follow.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Stat } from '../../ui/card.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Reason } from '../../ui/reason.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import { JobBadge, JobProgress } from '../jobs/shared/status.tsx';
import { hasJobEnded, type Job } from '../jobs/shared/work.ts';
import { JobActions } from './job-actions.tsx';
import { JobFacts } from './job-facts.tsx';
import { JobResult } from './job-result.tsx';
import type en from './messages.en.ts';
import '../jobs/shared/work.css';
import './job.css';

export default function JobPage({ id }: { readonly id: string }) {
  const t = useMessages<typeof en>();
  const query = useFollowed<Job>({
    queryKey: ['job', id],
    read: (signal) => call(api.GET('/v1/jobs/{job_id}', { params: { path: { job_id: id } }, signal })),
    eventsPath: `/v1/jobs/${encodeURIComponent(id)}/events`,
    hasEnded: hasJobEnded,
  });
  const job = query.data;
  return (
    <div class="page job">
      <SiteLink href="/jobs" class="work-back">
        {t('jobsAndBatches')}
      </SiteLink>
      <header class="page-head job-head">
        <div class="work-title">
          <h1>{job?.model ?? t('title')}</h1>
          {job !== undefined && <JobBadge job={job} />}
        </div>
        {job !== undefined && <JobActions job={job} />}
      </header>
      <QueryView query={query} loading={<Skeleton lines={10} height="2rem" />}>
        {(found) => <JobView job={found} onReload={query.refetch} />}
      </QueryView>
    </div>
  );
}

function JobView({ job, onReload }: { readonly job: Job; readonly onReload: () => unknown }) {
  const t = useMessages<typeof en>();
  return (
    <>
      <JobStats job={job} />
      <JobFacts job={job} />
      {!hasJobEnded(job) && (
        <section class="card" aria-live="polite">
          <JobProgress job={job} />
          <p class="soft small">{t('mayLeave')}</p>
        </section>
      )}
      {job.error !== null && (
        <Notice
          tone={job.status === 'failed' ? 'bad' : 'neutral'}
          title={t(job.status === 'failed' ? 'whyFailed' : 'whyCancelled')}
        >
          <div>
            <Reason code={job.error.code} message={job.error.message} />
          </div>
          {job.status === 'failed' && (
            <p class="soft small">{t(isWorthRetrying(job) ? 'sendAgain' : 'changeFirst')}</p>
          )}
        </Notice>
      )}
      {job.status === 'succeeded' && <JobResult job={job} onReload={onReload} />}
    </>
  );
}

/** As docs/jobs.md says: after these, the same request may succeed. */
const temporaryCodes = [
  'upstream_error',
  'upstream_timeout',
  'queue_full',
  'service_unavailable',
  'deadline_exceeded',
];

const isWorthRetrying = ({ error }: Job): boolean => error !== null && temporaryCodes.includes(error.code);

function JobStats({ job }: { readonly job: Job }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { created_at: created, started_at: started, ended_at: ended, cost_request: cost } = job;
  const between = (from: string, to: string): string =>
    format.duration((new Date(to).getTime() - new Date(from).getTime()) / 1_000);
  return (
    <section class="card">
      <div class="stats">
        <Stat
          label={t('cost')}
          note={
            job.free_request === true ? (
              t('free')
            ) : cost === null ? (
              t('atTheEnd')
            ) : (
              <SiteLink href={`/requests?request=${encodeURIComponent(job.id)}`}>{t('costDetails')}</SiteLink>
            )
          }
        >
          {cost === null ? '—' : <Money value={cost} />}
        </Stat>
        <Stat label={t('waited')}>{started === null ? '—' : between(created, started)}</Stat>
        <Stat label={t('ran')}>{started === null || ended === null ? '—' : between(started, ended)}</Stat>
        <Stat label={t('created')} note={<Time value={created} />}>
          <Time value={created} style="ago" />
        </Stat>
      </div>
    </section>
  );
}

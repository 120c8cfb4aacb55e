import { useFormat } from '../../../lib/format.ts';
import { useMessages } from '../../../lib/language.tsx';
import { Badge } from '../../../ui/card.tsx';
import { Progress } from '../../../ui/progress.tsx';
import type texts from './texts.en.ts';
import {
  countRun,
  describeBatchStatus,
  describeJobStatus,
  findShare,
  hasBatchEnded,
  type CountedBatch,
  type JobSummary,
} from './work.ts';

export function JobBadge({ job }: { readonly job: Pick<JobSummary, 'status' | 'cancel_requested'> }) {
  const t = useMessages<typeof texts>();
  const { key, tone } = describeJobStatus(job);
  return <Badge tone={tone}>{t(key)}</Badge>;
}

export function BatchBadge({ batch }: { readonly batch: CountedBatch }) {
  const t = useMessages<typeof texts>();
  const { key, tone } = describeBatchStatus(batch);
  return <Badge tone={tone}>{t(key)}</Badge>;
}

/** The place in the queue or the progress of a job, and how long it will take. Nothing once it has ended. */
export function JobProgress({ job }: { readonly job: JobSummary }) {
  const t = useMessages<typeof texts>();
  const format = useFormat();
  const { status, position, eta_seconds: eta, progress } = job;
  if (status !== 'queued' && status !== 'active') return null;
  const parts = [
    status === 'active' && progress > 0 ? format.percent(progress) : null,
    position === null ? null : position === 0 ? t('next') : t('ahead', { count: position }),
    eta === null ? null : t('left', { time: format.duration(Math.max(1, Math.round(eta))) }),
  ].filter((part) => part !== null);
  return (
    <div class="work-progress">
      {status === 'active' && <Progress share={progress > 0 ? progress : null} label={t('progress')} />}
      <p class="soft small number">{parts.join(' · ')}</p>
    </div>
  );
}

/** How many lines of a batch have ended, and how long the others will take. */
export function BatchProgress({ batch }: { readonly batch: CountedBatch }) {
  const t = useMessages<typeof texts>();
  const format = useFormat();
  const { request_counts: counts, lines_not_run: notRun, eta_seconds: eta } = batch;
  const { done, failed } = countRun(batch);
  const hasEnded = hasBatchEnded(batch);
  const parts = [
    hasEnded && counts.failed === 0 && counts.completed === counts.total
      ? t('lines', { count: counts.total })
      : t('linesDone', { done, total: counts.total }),
    failed === 0 ? null : t('linesFailed', { count: failed }),
    notRun === 0 ? null : t('linesNotRun', { count: notRun }),
    eta === null || hasEnded ? null : t('left', { time: format.duration(Math.max(1, Math.round(eta))) }),
  ].filter((part) => part !== null);
  return (
    <div class="work-progress">
      <Progress share={findShare(batch) ?? (hasEnded ? 0 : null)} label={t('progress')} />
      <p class="soft small number">{parts.join(' · ')}</p>
    </div>
  );
}

import { useMessages } from '../../lib/language.tsx';
import { Card } from '../../ui/card.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Fact, TimeFact } from '../../ui/fact.tsx';
import type { Job } from '../jobs/shared/work.ts';
import type en from './messages.en.ts';

/** What else is known of a job. */
export function JobFacts({ job }: { readonly job: Job }) {
  const t = useMessages<typeof en>();
  const times = [
    ['deadline', job.deadline_at],
    ['cancelAt', job.cancel_at],
    ['kept', job.expires_at],
  ] as const;
  return (
    <Card title={t('details')}>
      <dl class="facts">
        <Fact name={t('id')}>
          <code class="work-id">{job.id}</code> <CopyButton text={job.id} label={t('copyId')} />
        </Fact>
        <Fact name={t('kind')}>{t(job.operation)}</Fact>
        <TimeFact name={t('started')} time={job.started_at} />
        <TimeFact name={t('ended')} time={job.ended_at} />
        {times.map(([name, value]) => value !== null && <TimeFact key={name} name={t(name)} time={value} />)}
        {job.attempts > 1 && <Fact name={t('attempts')}>{job.attempts}</Fact>}
        {job.webhook !== null && (
          <Fact name={t('webhook')}>
            {job.webhook.url}
            <p class="soft small">
              {t(`webhook-${job.webhook.status}`)}
              {job.webhook.last_error !== null && `: ${job.webhook.last_error}`}
            </p>
          </Fact>
        )}
      </dl>
    </Card>
  );
}

import { useState } from 'preact/hooks';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { readDone, readEffects, toCall, type CallPurpose } from '../../admin/dry-run.ts';
import { LastChange } from '../../admin/last-change.tsx';
import { AccountLink, ModelLink, RequestLink } from '../../admin/links.tsx';
import { useMay } from '../../admin/session.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Fact } from '../../ui/fact.tsx';
import { Money } from '../../ui/money.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Reason } from '../../ui/reason.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import { JobBadge } from '../jobs/shared/status.tsx';
import { hasJobEnded } from '../jobs/shared/work.ts';
import type en from './messages.en.ts';
import { nameOperation } from './name-operation.ts';
import { useJob, type AdminJob } from './read-work.ts';
import { Everything, Times } from './record.tsx';

/** Everything about a durable job. While it has not ended, it is read again every few seconds. */
export function JobDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  return (
    <Dialog title={t('job')} isOpen onClose={onClose} size="large">
      <QueryView query={useJob(id)} loading={<Skeleton lines={8} height="2rem" />}>
        {(job) => <JobDetails key={job.id} job={job} />}
      </QueryView>
    </Dialog>
  );
}

function JobDetails({ job }: { readonly job: AdminJob }) {
  const t = useMessages<typeof en>();
  const mayCancel = useMay('all');
  const { id, account, error_code: code, error_message: message } = job;
  const hasEnded = hasJobEnded(job);
  return (
    <div class="admin-work-details">
      <p class="admin-work-id">
        <code>{id}</code>
        <CopyButton text={id} label={t('copyId')} />
      </p>
      <div class="admin-work-head">
        <JobBadge job={job} />
        {!hasEnded && <span class="soft small">{t('followed')}</span>}
        {mayCancel && !hasEnded && !job.cancel_requested && <CancelJob job={job} />}
      </div>
      {code !== null && (
        <Notice tone={job.status === 'failed' ? 'bad' : 'neutral'} title={code}>
          <p>
            <Reason code={code} message={message ?? ''} />
          </p>
          {job.status === 'cancelled' && <LastChange resource={`job:${id}`} />}
        </Notice>
      )}
      <dl class="facts">
        <Fact name={t('account')}>
          <AccountLink id={account} name={job.account_name} />
        </Fact>
        <Fact name={t('model')}>
          <ModelLink id={job.model} />
        </Fact>
        <Fact name={t('operation')}>{nameOperation(t, job.operation)}</Fact>
        <Fact name={t('queue')}>{job.queue}</Fact>
        <Fact name={t('cost')}>{job.cost === null ? '–' : <Money value={job.cost} />}</Fact>
        <Fact name={t('attempts')}>{job.attempts}</Fact>
        <Times record={job} />
        {job.worker !== null && <Fact name={t('worker')}>{job.worker}</Fact>}
        {job.cancel_requested && <Fact name={t('cancelRequested')}>{t('yes')}</Fact>}
        {job.webhook_url !== null && <Fact name={t('webhook')}>{job.webhook_url}</Fact>}
        {/* It has the id of its job. It is logged once it reached a worker. */}
        {job.started_at !== null && hasEnded && (
          <Fact name={t('requestOfJob')}>
            <RequestLink id={id} />
          </Fact>
        )}
      </dl>
      <Everything record={job} />
    </div>
  );
}

function cancel({ id, account }: AdminJob, purpose: CallPurpose) {
  const { query, signal } = toCall(purpose);
  const params = { path: { job_id: id }, query: { account, ...query } };
  return call(adminApi.POST('/v1/admin/jobs/{job_id}/cancel', { params, signal }));
}

function CancelJob({ job }: { readonly job: AdminJob }) {
  const t = useMessages<typeof en>();
  const [isOpen, setIsOpen] = useState(false);
  const close = (): void => setIsOpen(false);
  return (
    <>
      <Button size="small" onClick={() => setIsOpen(true)}>
        {t('cancelJob')}
      </Button>
      {isOpen && (
        <ConfirmAction
          title={
            job.account_name === null ? t('cancelJobTitle') : `${t('cancelJobTitle')}: ${job.account_name}`
          }
          action={t('cancelJobAction')}
          preview={(signal) => readEffects(cancel(job, signal))}
          describe={(effects) => <CancelEffects effects={effects} />}
          run={(given) => readDone(cancel(job, given))}
          onDone={({ status }) => {
            showToast(t(status === 'cancelled' ? 'jobCancelled' : 'jobStopping'));
            close();
          }}
          onClose={close}
        />
      )}
    </>
  );
}

function CancelEffects({ effects }: { readonly effects: Schema<'DryRunOfCancelledJob'>['effects'] }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { jobs, is_running: isRunning, running_seconds: seconds } = effects;
  if (jobs === 0) return <p>{t('hasEnded')}</p>;
  return <p>{isRunning ? t('cancelActive', { time: format.duration(seconds ?? 0) }) : t('cancelQueued')}</p>;
}

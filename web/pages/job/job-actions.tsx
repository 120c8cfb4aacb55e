import { useState } from 'preact/hooks';
import { refreshAccounts } from '../../lib/accounts.ts';
import { api, call } from '../../lib/api.ts';
import { saveBlob } from '../../lib/download.ts';
import { useMessages } from '../../lib/language.tsx';
import { queryClient } from '../../lib/queries.ts';
import { Button } from '../../ui/button.tsx';
import { showToast } from '../../ui/toast.tsx';
import { Ask } from '../../ui/ask.tsx';
import { hasJobEnded, type Job } from '../jobs/shared/work.ts';
import type en from './messages.en.ts';

/** What can be done with a job in its current state. */
export function JobActions({ job }: { readonly job: Job }) {
  const t = useMessages<typeof en>();
  const [asked, setAsked] = useState<'cancel' | 'delete' | null>(null);
  const close = (): void => setAsked(null);
  const path = { job_id: job.id };
  const cancel = async (): Promise<void> => {
    queryClient.setQueryData(
      ['job', job.id],
      await call(api.DELETE('/v1/jobs/{job_id}', { params: { path } })),
    );
    await refreshLists();
  };
  const deleteResponse = async (): Promise<void> => {
    await call(api.DELETE('/v1/jobs/{job_id}/response', { params: { path } }));
    await Promise.all([
      queryClient.invalidateQueries({ queryKey: ['job', job.id] }),
      queryClient.invalidateQueries({ queryKey: ['job-images', job.id] }),
    ]);
    showToast(t('deleted'));
  };
  return (
    <div class="work-actions">
      {job.response !== null && (
        <>
          <Button icon="download" onClick={() => saveResponse(job)}>
            {t('download')}
          </Button>
          <Button icon="trash" onClick={() => setAsked('delete')}>
            {t('deleteResponse')}
          </Button>
        </>
      )}
      {!hasJobEnded(job) && !job.cancel_requested && (
        <Button onClick={() => setAsked('cancel')}>{t('cancel')}</Button>
      )}
      <Ask
        title={t('cancelTitle')}
        action={t('cancel')}
        kind="danger"
        isOpen={asked === 'cancel'}
        onClose={close}
        run={cancel}
      >
        <p>{t(describeCancel(job))}</p>
      </Ask>
      <Ask
        title={t('deleteTitle')}
        action={t('deleteResponse')}
        kind="danger"
        isOpen={asked === 'delete'}
        onClose={close}
        run={deleteResponse}
      >
        <p>{t('deleteText')}</p>
      </Ask>
    </div>
  );
}

/** Returns the key of the text that says what a cancelled job costs. */
function describeCancel({ status, operation }: Job): 'cancelQueued' | 'cancelChat' | 'cancelSent' {
  if (status === 'queued') return 'cancelQueued';
  return operation === 'chat.completions' ? 'cancelChat' : 'cancelSent';
}

const refreshLists = (): Promise<unknown> =>
  Promise.all([queryClient.invalidateQueries({ queryKey: ['jobs'] }), refreshAccounts()]);

function saveResponse({ id, response }: Job): void {
  saveBlob(new Blob([JSON.stringify(response, null, 2)], { type: 'application/json' }), `${id}.json`);
}

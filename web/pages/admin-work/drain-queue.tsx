import { useState } from 'preact/hooks';
import { adminApi, call } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { readDone, readEffects, toCall, type CallPurpose } from '../../admin/dry-run.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { showToast } from '../../ui/toast.tsx';
import type en from './messages.en.ts';
import type { QueueName } from './read-work.ts';

function drain(queue: QueueName, purpose: CallPurpose) {
  const { query, signal } = toCall(purpose);
  return call(
    adminApi.POST('/v1/admin/queues/{queue}/drain', { params: { path: { queue }, query }, signal }),
  );
}

async function countWaiting(queue: QueueName, signal: AbortSignal) {
  const response = await drain(queue, signal);
  const effects = await readEffects(Promise.resolve(response));
  return { ...effects, isExact: 'is_exact' in response && response.is_exact };
}

/** Cancels all that waits in a queue, after its name was typed. */
export function DrainQueue({ queue }: { readonly queue: QueueName }) {
  const t = useMessages<typeof en>();
  const [isOpen, setIsOpen] = useState(false);
  const close = (): void => setIsOpen(false);
  const count = (requests: number, jobs: number) => ({
    requests: t('waitingRequests', { count: requests }),
    jobs: t('waitingJobs', { count: jobs }),
  });
  return (
    <>
      <Button size="small" onClick={() => setIsOpen(true)}>
        {t('drain')}
      </Button>
      {isOpen && (
        <ConfirmAction
          title={t('drainTitle', { queue })}
          action={t('drainAction')}
          word={queue}
          preview={(signal) => countWaiting(queue, signal)}
          describe={({ requests, jobs, accounts, isExact }) => (
            <>
              <p>
                {requests + jobs === 0
                  ? t('drainNothing')
                  : t(isExact ? 'drainEffect' : 'drainEffectAtLeast', {
                      ...count(requests, jobs),
                      accounts: t('ofAccounts', { count: accounts }),
                    })}
              </p>
              <p>{t('drainRest')}</p>
            </>
          )}
          run={(given) => readDone(drain(queue, given))}
          onDone={({ requests, jobs }) => {
            showToast(t('drainedDone', count(requests, jobs)));
            close();
          }}
          onClose={close}
        />
      )}
    </>
  );
}

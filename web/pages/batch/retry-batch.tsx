import { useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { api, call } from '../../lib/api.ts';
import { useMessages } from '../../lib/language.tsx';
import { queryClient } from '../../lib/queries.ts';
import { Ask } from '../../ui/ask.tsx';
import { Button } from '../../ui/button.tsx';
import type { Batch } from '../jobs/shared/work.ts';
import type en from './messages.en.ts';
import { refreshLists } from './refresh-lists.ts';

/** Whether lines of a batch can be retried. */
export const canRetry = ({ error_file_id: errors, request_counts: { failed } }: Batch): boolean =>
  errors !== null && failed > 0;

/** Runs the failed lines of a batch again, in a new one. @param isInVain whether they would fail again */
export function RetryBatch({ batch, isInVain }: { readonly batch: Batch; readonly isInVain: boolean }) {
  const t = useMessages<typeof en>();
  const [, navigate] = useLocation();
  const [isAsking, setIsAsking] = useState(false);
  const { id, request_counts: counts } = batch;
  const retry = async (): Promise<void> => {
    const params = { path: { batch_id: id }, header: { 'Idempotency-Key': `retry ${id}` } };
    const next = await call(api.POST('/v1/batches/{batch_id}/retry', { params }));
    queryClient.setQueryData(['batch', next.id], next);
    navigate(`/batches/${next.id}`);
    await refreshLists();
  };
  return (
    <>
      <Button
        kind={isInVain ? 'secondary' : 'primary'}
        size={isInVain ? 'small' : 'medium'}
        icon="refresh"
        onClick={() => setIsAsking(true)}
      >
        {t('retry')}
      </Button>
      <Ask
        title={t('retryTitle')}
        action={t('retry')}
        kind="primary"
        isOpen={isAsking}
        onClose={() => setIsAsking(false)}
        run={retry}
      >
        {isInVain && <p>{t('retryInVain')}</p>}
        <p>{t('retryText', { count: counts.failed })}</p>
        <p>{t('retryOnce')}</p>
      </Ask>
    </>
  );
}

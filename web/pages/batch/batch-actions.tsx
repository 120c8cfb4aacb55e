import { useMutation } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { SiteLink } from '../../frame/site-link.tsx';
import { api, call } from '../../lib/api.ts';
import { describeError } from '../../lib/api-error.ts';
import { downloadFile } from '../../lib/download.ts';
import { useLanguage, useMessages } from '../../lib/language.tsx';
import { queryClient } from '../../lib/queries.ts';
import { Button } from '../../ui/button.tsx';
import { showToast } from '../../ui/toast.tsx';
import { Ask } from '../../ui/ask.tsx';
import { hasBatchEnded, type Batch } from '../jobs/shared/work.ts';
import { useMustMendFirst } from './mend-first.ts';
import type en from './messages.en.ts';
import { refreshLists } from './refresh-lists.ts';
import { canRetry, RetryBatch } from './retry-batch.tsx';

/** What can be done with a batch in its current state. */
export function BatchActions({ batch }: { readonly batch: Batch }) {
  const t = useMessages<typeof en>();
  const [isAsking, setIsAsking] = useState(false);
  const { id, request_counts: counts } = batch;
  const path = { batch_id: id };
  const hasEnded = hasBatchEnded(batch);
  const mustMend = useMustMendFirst(batch);
  const remaining = counts.total - counts.completed - counts.failed;
  const cancel = async (): Promise<void> => {
    const next = await call(api.POST('/v1/batches/{batch_id}/cancel', { params: { path } }));
    queryClient.setQueryData(['batch', id], next);
    await refreshLists();
  };
  return (
    <div class="work-actions">
      <Download
        fileId={batch.partial_output_file_id}
        name={`${id}-results.jsonl`}
        text={t(hasEnded ? 'results' : 'resultsSoFar')}
      />
      <Download fileId={batch.partial_error_file_id} name={`${id}-errors.jsonl`} text={t('errors')} />
      {hasEnded &&
        canRetry(batch) &&
        (mustMend ? (
          <SiteLink href="/jobs?tab=batches" class="button primary medium">
            {t('uploadMended')}
          </SiteLink>
        ) : (
          <RetryBatch batch={batch} isInVain={false} />
        ))}
      {!hasEnded && batch.status !== 'cancelling' && (
        <Button onClick={() => setIsAsking(true)}>{t('cancel')}</Button>
      )}
      <Ask
        title={t('cancelTitle')}
        action={t('cancel')}
        kind="danger"
        isOpen={isAsking}
        onClose={() => setIsAsking(false)}
        run={cancel}
      >
        <p>{t('cancelRunning')}</p>
        <p>{t('cancelOthers', { count: remaining })}</p>
      </Ask>
    </div>
  );
}

function Download({
  fileId,
  name,
  text,
}: {
  readonly fileId: string | null;
  readonly name: string;
  readonly text: string;
}) {
  const language = useLanguage();
  const download = useMutation({
    mutationFn: (id: string) => downloadFile(`/v1/files/${id}/content`, name),
    onError: (error) => showToast(describeError(error, language), 'error'),
  });
  return (
    <Button
      icon="download"
      busy={download.isPending}
      disabled={fileId === null}
      onClick={() => fileId !== null && download.mutate(fileId)}
    >
      {text}
    </Button>
  );
}

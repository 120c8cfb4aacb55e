import { useState } from 'preact/hooks';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { readDone, readEffects, toCall, type CallPurpose } from '../../admin/dry-run.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Money } from '../../ui/money.tsx';
import { showToast } from '../../ui/toast.tsx';
import { hasBatchEnded } from '../jobs/shared/work.ts';
import type en from './messages.en.ts';
import type { AdminBatch } from './read-work.ts';

interface ActionProps {
  readonly batch: AdminBatch;
  readonly onClose: () => void;
}

/** What can be done with a batch in its current state. */
export function BatchActions({
  batch,
  onOpen,
}: {
  readonly batch: AdminBatch;
  readonly onOpen: (id: string) => void;
}) {
  const t = useMessages<typeof en>();
  const [opened, setOpened] = useState<'cancel' | 'retry' | null>(null);
  const close = (): void => setOpened(null);
  const hasEnded = hasBatchEnded(batch);
  return (
    <>
      {!hasEnded && batch.status !== 'cancelling' && (
        <Button size="small" onClick={() => setOpened('cancel')}>
          {t('cancelBatch')}
        </Button>
      )}
      {hasEnded && batch.lines_failed > 0 && (
        <Button size="small" onClick={() => setOpened('retry')}>
          {t('retryBatch')}
        </Button>
      )}
      {opened === 'cancel' && <CancelBatch batch={batch} onClose={close} />}
      {opened === 'retry' && <RetryBatch batch={batch} onClose={close} onOpen={onOpen} />}
    </>
  );
}

/** With whose it is. */
const titleOf = (title: string, { account_name: name }: AdminBatch): string =>
  name === null ? title : `${title}: ${name}`;

function cancel({ id, account }: AdminBatch, purpose: CallPurpose) {
  const { query, signal } = toCall(purpose);
  const params = { path: { batch_id: id }, query: { account, ...query } };
  return call(adminApi.POST('/v1/admin/batches/{batch_id}/cancel', { params, signal }));
}

function CancelBatch({ batch, onClose }: ActionProps) {
  const t = useMessages<typeof en>();
  return (
    <ConfirmAction
      title={titleOf(t('cancelBatchTitle'), batch)}
      action={t('cancelBatchAction')}
      preview={(signal) => readEffects(cancel(batch, signal))}
      describe={(effects) => <CancelEffects effects={effects} />}
      run={(given) => readDone(cancel(batch, given))}
      onDone={() => {
        showToast(t('batchCancelled'));
        onClose();
      }}
      onClose={onClose}
    />
  );
}

function CancelEffects({ effects }: { readonly effects: Schema<'DryRunOfCancelledBatch'>['effects'] }) {
  const t = useMessages<typeof en>();
  const { batches, lines_done: done, lines_left: left, cost, reserved } = effects;
  if (batches === 0) return <p>{t('hasEnded')}</p>;
  return (
    <>
      <p>{t('cancelBatchLeft', { count: left })}</p>
      <p>{t('cancelBatchDone', { count: done })}</p>
      <p>
        {t.nodes('cancelBatchCost', { cost: <Money value={cost} /> })}
        {reserved > 0 && <> {t.nodes('cancelBatchReserved', { reserved: <Money value={reserved} /> })}</>}
      </p>
    </>
  );
}

function RetryBatch({ batch, onClose, onOpen }: ActionProps & { readonly onOpen: (id: string) => void }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { id, account, lines_failed: failed, lines_succeeded: succeeded, cost } = batch;
  return (
    <ConfirmAction
      title={titleOf(t('retryBatchTitle'), batch)}
      action={t('retryBatchAction')}
      kind="primary"
      run={(given) =>
        call(
          adminApi.POST('/v1/admin/batches/{batch_id}/retry', {
            // A batch is retried once: sent twice, it returns the batch that was made.
            params: {
              path: { batch_id: id },
              query: { account, ...given },
              header: { 'Idempotency-Key': `retry ${id}` },
            },
          }),
        )
      }
      onDone={(next) => {
        showToast(t('batchRetried'));
        onClose();
        onOpen(next.id);
      }}
      onClose={onClose}
    >
      <div class="confirm-effect">
        <p>{t('retryLines', { count: failed })}</p>
        <p>{t('retryPays', { done: format.number(succeeded), cost: format.money(cost) })}</p>
      </div>
    </ConfirmAction>
  );
}

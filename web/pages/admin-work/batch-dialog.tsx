import { useEffect, useState } from 'preact/hooks';
import { consoleQueries } from '../../admin/api.ts';
import { LastChange } from '../../admin/last-change.tsx';
import { AccountLink, ModelLink } from '../../admin/links.tsx';
import { useMay } from '../../admin/session.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Fact } from '../../ui/fact.tsx';
import { Money } from '../../ui/money.tsx';
import { Notice } from '../../ui/notice.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import { BatchBadge, BatchProgress } from '../jobs/shared/status.tsx';
import { hasBatchEnded } from '../jobs/shared/work.ts';
import { BatchActions } from './batch-actions.tsx';
import type en from './messages.en.ts';
import { nameOperation } from './name-operation.ts';
import { countLines, useBatch, type AdminBatch } from './read-work.ts';
import { Everything, ModelSums, Times } from './record.tsx';

/** Everything about a batch. While it runs, it is read again every few seconds. */
export function BatchDialog({
  id,
  onOpen,
  onClose,
}: {
  readonly id: string;
  /** Opens another batch instead. */
  readonly onOpen: (id: string) => void;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  return (
    <Dialog title={t('batch')} isOpen onClose={onClose} size="large">
      <QueryView query={useBatch(id)} loading={<Skeleton lines={8} height="2rem" />}>
        {(batch) => <BatchDetails key={batch.id} batch={batch} onOpen={onOpen} />}
      </QueryView>
    </Dialog>
  );
}

/** Why a batch may have been stopped. */
const stopReasons = [
  'insufficient_balance',
  'budget_exceeded',
  'key_expired',
  'batch_cancelled',
  'batch_expired',
] as const;

function BatchDetails({
  batch,
  onOpen,
}: {
  readonly batch: AdminBatch;
  readonly onOpen: (id: string) => void;
}) {
  const t = useMessages<typeof en>();
  const mayChange = useMay('all');
  const { id, stopped_because: reason, models, slices } = batch;
  const hasEnded = hasBatchEnded(batch);
  const [hadEnded] = useState(hasEnded);
  useEffect(() => {
    // The list below has not followed it.
    if (hasEnded && !hadEnded)
      consoleQueries.invalidateQueries({ queryKey: ['batches'] }).catch(() => undefined);
  }, [hasEnded, hadEnded]);
  const known = stopReasons.find((one) => one === reason);
  return (
    <div class="admin-work-details">
      <p class="admin-work-id">
        <code>{id}</code>
        <CopyButton text={id} label={t('copyId')} />
      </p>
      <div class="admin-work-head">
        <BatchBadge batch={countLines(batch)} />
        {!hasEnded && <span class="soft small">{t('followed')}</span>}
        {mayChange && <BatchActions batch={batch} onOpen={onOpen} />}
      </div>
      <BatchProgress batch={countLines(batch)} />
      <Facts batch={batch} />
      {reason !== null && (
        <Notice tone="warning" title={t('stoppedBecause')}>
          <p>
            {known === undefined ? null : <>{t(`stopped_${known}`)} </>}
            <code>{reason}</code>
          </p>
          {reason === 'batch_cancelled' && <LastChange resource={`batch:${id}`} />}
        </Notice>
      )}
      {models.length > 0 && (
        <section>
          <h3>{t('models')}</h3>
          <ModelSums sums={models} />
        </section>
      )}
      {slices.length > 0 && <p class="soft small">{t('slices', { count: slices.length })}</p>}
      <dl class="facts">
        <Times record={batch} />
      </dl>
      <Everything record={batch} />
    </div>
  );
}

function Facts({ batch }: { readonly batch: AdminBatch }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { account, model, cost, reserved, lines_total: total } = batch;
  const { lines_succeeded: succeeded, lines_failed: without, lines_not_run: notRun } = batch;
  const files = [
    ['inputFile', batch.input_file],
    ['outputFile', batch.output_file],
    ['errorFile', batch.error_file],
  ] as const;
  return (
    <>
      <dl class="facts">
        <Fact name={t('account')}>
          <AccountLink id={account} name={batch.account_name} />
        </Fact>
        <Fact name={t('endpoint')}>{nameOperation(t, batch.endpoint)}</Fact>
        {model !== '' && (
          <Fact name={t('model')}>
            <ModelLink id={model} />
          </Fact>
        )}
        <Fact name={t(hasBatchEnded(batch) ? 'cost' : 'costSoFar')}>
          <Money value={cost} />
        </Fact>
        <Fact name={t('reserved')}>
          <Money value={reserved} />
        </Fact>
        <Fact name={t('succeededLines')}>{format.number(succeeded)}</Fact>
        <Fact name={t('failedLines')}>{format.number(without - notRun)}</Fact>
        {notRun > 0 && <Fact name={t('notRunLines')}>{format.number(notRun)}</Fact>}
        <Fact name={t('leftLines')}>{format.number(total - succeeded - without)}</Fact>
      </dl>
      <dl class="facts admin-work-files">
        {files.map(([name, file]) => (
          <Fact key={name} name={t(name)}>
            {file === null ? <span class="soft">{t('noFile')}</span> : <code class="small">{file}</code>}
          </Fact>
        ))}
      </dl>
    </>
  );
}

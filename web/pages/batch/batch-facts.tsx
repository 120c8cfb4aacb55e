import { useState } from 'preact/hooks';
import { useMessages } from '../../lib/language.tsx';
import { Card } from '../../ui/card.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Fact, TimeFact } from '../../ui/fact.tsx';
import { useFileNames } from '../jobs/shared/file-names.ts';
import { findBatchEnd, hasBatchEnded, toIso, type Batch, type BatchEndpoint } from '../jobs/shared/work.ts';
import type en from './messages.en.ts';

/** What else is known of a batch. */
export function BatchFacts({ batch }: { readonly batch: Batch }) {
  const t = useMessages<typeof en>();
  const names = useFileNames();
  // Nothing moves when the batch ends while somebody looks.
  const [hadEnded] = useState(() => hasBatchEnded(batch));
  const times = [
    ['created', batch.created_at],
    ['started', batch.in_progress_at],
    ['ended', findBatchEnd(batch)],
    ...(hadEnded ? [] : [['expires', hasBatchEnded(batch) ? null : batch.expires_at] as const]),
  ] as const;
  return (
    <Card title={t('details')}>
      <dl class="facts">
        <Fact name={t('file')}>{names === null ? '…' : (names.get(batch.input_file_id) ?? '–')}</Fact>
        <Fact name={t('id')}>
          <code class="work-id">{batch.id}</code> <CopyButton text={batch.id} label={t('copyId')} />
        </Fact>
        <Fact name={t('kind')}>{t(batch.endpoint as BatchEndpoint)}</Fact>
        {times.map(([name, value]) => (
          <TimeFact key={name} name={t(name)} time={value === null ? null : toIso(value)} />
        ))}
        {Object.entries(batch.metadata ?? {}).map(([name, value]) => (
          <Fact key={`metadata ${name}`} name={name}>
            {value}
          </Fact>
        ))}
      </dl>
    </Card>
  );
}

import { useQuery } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { api, call } from '../../lib/api.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Stat } from '../../ui/card.tsx';
import { Money } from '../../ui/money.tsx';
import { hasBatchEnded, type Batch, type BatchEndpoint } from '../jobs/shared/work.ts';
import type en from './messages.en.ts';

/** What the batch has cost, beside what it was expected to cost, and what is held for lines that are running. */
export function BatchStats({ batch }: { readonly batch: Batch }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  // Nothing moves when the batch ends while somebody looks.
  const [hadEnded] = useState(() => hasBatchEnded(batch));
  const { cost, reserved, max_cost: maxCost, usage } = batch;
  return (
    <div class="stats">
      <Stat
        label={t(hasBatchEnded(batch) ? 'cost' : 'costSoFar')}
        note={maxCost === null ? '' : t.nodes('ofAtMost', { amount: <Money value={maxCost} /> })}
      >
        <Money value={cost} />
      </Stat>
      <Stat label={t('estimate')} note={t('estimateNote')}>
        <BatchEstimate batch={batch} />
      </Stat>
      {!hadEnded && (
        <Stat label={t('reserved')} note={t('reservedNote')}>
          <Money value={reserved} />
        </Stat>
      )}
      <Stat
        label={t('tokens')}
        note={t('tokensNote', {
          input: format.short(usage.input_tokens),
          output: format.short(usage.output_tokens),
        })}
      >
        {format.short(usage.total_tokens)}
      </Stat>
    </div>
  );
}

/** The batch does not keep its estimate: it is made again, as long as the file exists. */
function BatchEstimate({ batch }: { readonly batch: Batch }) {
  const { data, error } = useQuery({
    queryKey: ['file-estimate', batch.input_file_id, batch.endpoint],
    queryFn: ({ signal }) =>
      call(
        api.GET('/v1/files/{file_id}/cost-estimate', {
          params: {
            path: { file_id: batch.input_file_id },
            query: { endpoint: batch.endpoint as BatchEndpoint },
          },
          signal,
        }),
      ),
    // A file with faults has none.
    enabled: batch.errors === null,
    staleTime: Infinity,
  });
  if (data !== undefined) return <Money value={data.total_estimated_cost} />;
  return <>{error === null && batch.errors === null ? '…' : '—'}</>;
}

import { useMutation, useQuery } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { useLocation, useSearchParams } from 'wouter-preact';
import type { components } from '../../generated/api.d.ts';
import { refreshAccounts, useAccounts } from '../../lib/accounts.ts';
import { api, call } from '../../lib/api.ts';
import { ApiError } from '../../lib/api-error.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { readAmount } from '../../lib/read-amount.ts';
import { queryClient } from '../../lib/queries.ts';
import { Button } from '../../ui/button.tsx';
import { Stat } from '../../ui/card.tsx';
import { Field, Select } from '../../ui/field.tsx';
import { Money } from '../../ui/money.tsx';
import { Notice } from '../../ui/notice.tsx';
import { ErrorState, ErrorText, Skeleton } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import { FaultList, listFaults } from './fault-list.tsx';
import type en from './messages.en.ts';
import { ModelTable } from './model-table.tsx';
import type { Batch, BatchEndpoint } from './shared/work.ts';

type Estimate = components['schemas']['FileCostEstimate'];

const endpoints: readonly BatchEndpoint[] = [
  '/v1/chat/completions',
  '/v1/embeddings',
  '/v1/images/generations',
  '/v1/images/edits',
];

const isEndpoint = (text: string | null): text is BatchEndpoint =>
  endpoints.some((endpoint) => endpoint === text);

/** What a batch of an uploaded file will cost, and the button that starts it. */
export function FileEstimate({ fileId, onClose }: { readonly fileId: string; readonly onClose: () => void }) {
  const [search, setSearch] = useSearchParams();
  const wanted = search.get('endpoint');
  const endpoint = isEndpoint(wanted) ? wanted : null;
  const path = { file_id: fileId };
  const file = useQuery({
    queryKey: ['file', fileId],
    queryFn: ({ signal }) => call(api.GET('/v1/files/{file_id}', { params: { path }, signal })),
    staleTime: Infinity,
  });
  const estimate = useQuery({
    queryKey: ['file-estimate', fileId, endpoint],
    queryFn: ({ signal }) => {
      const query = endpoint === null ? {} : { endpoint };
      return call(api.GET('/v1/files/{file_id}/cost-estimate', { params: { path, query }, signal }));
    },
  });
  const remove = async (): Promise<void> => {
    onClose();
    // Nobody needs it. If that fails, it expires.
    await api.DELETE('/v1/files/{file_id}', { params: { path } });
  };
  const close = (): void => {
    remove().catch(() => undefined);
  };
  const needsEndpoint = isAboutEndpoint(estimate.error);
  const faults = listFaults(estimate.error);
  return (
    <div class="jobs-estimate">
      <FileName name={file.data?.filename ?? null} bytes={file.data?.bytes ?? null} />
      {(needsEndpoint || endpoint !== null) && (
        <EndpointChoice
          value={endpoint}
          onChoose={(value) =>
            setSearch({ tab: 'batches', file: fileId, endpoint: value }, { replace: true })
          }
        />
      )}
      {estimate.data !== undefined ? (
        <Offer key={estimate.data.endpoint} estimate={estimate.data} onClose={close} />
      ) : faults.length > 0 ? (
        <FaultList faults={faults} onClose={close} />
      ) : needsEndpoint ? (
        <OtherFile onClose={close} />
      ) : estimate.error !== null ? (
        <>
          <ErrorState error={estimate.error} onRetry={estimate.refetch} />
          <OtherFile onClose={close} />
        </>
      ) : (
        <Skeleton lines={4} height="2rem" />
      )}
    </div>
  );
}

const isAboutEndpoint = (error: unknown): boolean =>
  error instanceof ApiError && error.issues.some(({ field }) => field === 'endpoint');

function FileName({ name, bytes }: { readonly name: string | null; readonly bytes: number | null }) {
  const format = useFormat();
  return (
    <p class="jobs-name">
      {name ?? '…'} {bytes !== null && <span class="soft small">{format.bytes(bytes)}</span>}
    </p>
  );
}

function OtherFile({ onClose }: { readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  return (
    <div>
      <Button onClick={onClose}>{t('otherFile')}</Button>
    </div>
  );
}

function EndpointChoice({
  value,
  onChoose,
}: {
  readonly value: BatchEndpoint | null;
  readonly onChoose: (value: BatchEndpoint) => void;
}) {
  const t = useMessages<typeof en>();
  const choices = endpoints.map((endpoint) => ({ value: endpoint, label: t(endpoint) }));
  return (
    <div class="jobs-endpoint">
      <Select<BatchEndpoint | ''>
        label={t('endpoint')}
        hint={t('endpointHint')}
        value={value ?? ''}
        choices={value === null ? [{ value: '', label: t('choose') }, ...choices] : choices}
        onChoose={(chosen) => {
          if (chosen !== '') onChoose(chosen);
        }}
      />
    </div>
  );
}

function Offer({ estimate, onClose }: { readonly estimate: Estimate; readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { selected } = useAccounts();
  const { endpoint, total_requests: lines, total_estimated_cost: cost } = estimate;
  const balance = selected === null ? null : Number(selected.balance);
  const failing = estimate.models.filter(({ error }) => error !== undefined);
  return (
    <>
      <div class="stats">
        <Stat label={t('estimate')} note={t('estimateNote')}>
          <Money value={cost} />
        </Stat>
        <Stat label={t('linesLabel')} note={t(endpoint)}>
          {format.number(lines)}
        </Stat>
        <Stat label={t('tokens')} note={t('tokensNote', { count: estimate.total_estimated_output_tokens })}>
          {format.short(estimate.total_estimated_input_tokens)}
        </Stat>
        <Stat label={t('balance')} note={selected?.label}>
          {selected === null ? '…' : <Money value={selected.balance} />}
        </Stat>
      </div>
      {(estimate.models.length > 1 || failing.length > 0) && <ModelTable models={estimate.models} />}
      {balance !== null && balance < cost && (
        <Notice tone="warning" title={t('tooExpensive')}>
          <p class="small">{t('tooExpensiveText')}</p>
        </Notice>
      )}
      <Start estimate={estimate} onClose={onClose} />
    </>
  );
}

/** An amount that people typed; null without one, and NaN for anything else. */
function readLimit(text: string): number | null {
  if (text.trim() === '') return null;
  const amount = Number(readAmount(text) ?? Number.NaN);
  return amount > 0 ? amount : Number.NaN;
}

type FileUse = Pick<Estimate, 'file_id' | 'endpoint'>;

async function startBatch({ file_id: id, endpoint }: FileUse, maxCost: number | null): Promise<Batch> {
  return await call(
    api.POST('/v1/batches', {
      // The same file is started once, however often the button is pressed, and also if its first response was lost.
      params: { header: { 'Idempotency-Key': `${id} ${endpoint}` } },
      body: {
        input_file_id: id,
        endpoint,
        completion_window: '24h',
        ...(maxCost === null ? {} : { max_cost: maxCost }),
      },
    }),
  );
}

/** Whether the file was started with another limit. */
const isConflict = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 'idempotency_conflict';

/** Finds the batch of a file that was started just now. */
async function findBatch({ file_id: id, endpoint }: FileUse): Promise<Batch | null> {
  const { data } = await call(api.GET('/v1/batches', { params: { query: { limit: 100 } } }));
  return data.find((batch) => batch.input_file_id === id && batch.endpoint === endpoint) ?? null;
}

function Start({ estimate, onClose }: { readonly estimate: Estimate; readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  const [, navigate] = useLocation();
  const [limit, setLimit] = useState('');
  const [isWrong, setIsWrong] = useState(false);
  const start = useMutation({
    mutationFn: async (maxCost: number | null) => {
      try {
        return await startBatch(estimate, maxCost);
      } catch (error) {
        const started = isConflict(error) ? await findBatch(estimate) : null;
        if (started === null) throw error;
        showToast(t('alreadyStarted'), 'error');
        return started;
      }
    },
    onSuccess: async (batch) => {
      queryClient.setQueryData(['batch', batch.id], batch);
      navigate(`/batches/${batch.id}`);
      await Promise.all([queryClient.invalidateQueries({ queryKey: ['batches'] }), refreshAccounts()]);
    },
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const maxCost = readLimit(limit);
    setIsWrong(Number.isNaN(maxCost));
    if (!Number.isNaN(maxCost) && !start.isPending) start.mutate(maxCost);
  };
  return (
    <form class="jobs-start" onSubmit={submit} noValidate>
      <div class="jobs-limit">
        <Field
          label={t('maxCost')}
          hint={t('maxCostHint')}
          inputMode="decimal"
          placeholder={t('noLimit')}
          value={limit}
          error={isWrong ? t('maxCostWrong') : null}
          onInput={(event) => {
            setIsWrong(false);
            setLimit(event.currentTarget.value);
          }}
        />
      </div>
      <ErrorText error={start.error} />
      <div class="work-actions">
        <Button kind="primary" type="submit" busy={start.isPending}>
          {t('start')}
        </Button>
        <Button onClick={onClose}>{t('otherFile')}</Button>
      </div>
    </form>
  );
}

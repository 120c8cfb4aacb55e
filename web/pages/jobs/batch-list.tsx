import { keepPreviousData, useQuery } from '@tanstack/preact-query';
import { useSearchParams } from 'wouter-preact';
import { SiteLink } from '../../frame/site-link.tsx';
import { api, call } from '../../lib/api.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import type en from './messages.en.ts';
import { useFileNames } from './shared/file-names.ts';
import { BatchBadge, BatchProgress } from './shared/status.tsx';
import { hasBatchEnded, toIso, type Batch, type BatchEndpoint } from './shared/work.ts';

const pageSize = 20;
const busyPollMs = 3_000;
const idlePollMs = 20_000;

/** The batches of the account. The page is in the address. */
export function BatchList() {
  const t = useMessages<typeof en>();
  const [search, setSearch] = useSearchParams();
  const after = search.get('after');
  const names = useFileNames();
  const query = useQuery({
    queryKey: ['batches', after],
    queryFn: ({ signal }) =>
      call(
        api.GET('/v1/batches', {
          params: { query: { limit: pageSize, ...(after === null ? {} : { after }) } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      state.data?.data.every(hasBatchEnded) === false ? busyPollMs : idlePollMs,
  });
  return (
    <QueryView
      query={names === null ? { ...query, data: undefined } : query}
      loading={<Skeleton lines={6} height="3.5rem" />}
    >
      {({ data, has_more: hasMore, last_id: lastId }) =>
        data.length === 0 ? (
          <EmptyState title={t('noBatchesTitle')}>{t('noBatchesText')}</EmptyState>
        ) : (
          <div class="jobs-list">
            <ul class="jobs-rows card" aria-label={t('batches')}>
              {data.map((batch) => (
                <BatchRow key={batch.id} batch={batch} fileName={names?.get(batch.input_file_id) ?? null} />
              ))}
            </ul>
            <div class="jobs-older">
              {after !== null && <Button onClick={() => setSearch({ tab: 'batches' })}>{t('newest')}</Button>}
              {hasMore && lastId !== null && (
                <Button onClick={() => setSearch({ tab: 'batches', after: lastId })}>{t('older')}</Button>
              )}
            </div>
          </div>
        )
      }
    </QueryView>
  );
}

function BatchRow({ batch, fileName }: { readonly batch: Batch; readonly fileName: string | null }) {
  const t = useMessages<typeof en>();
  const { id, model, endpoint, created_at: createdAt, cost } = batch;
  return (
    <li class="jobs-row batch-row">
      <div class="jobs-what">
        <SiteLink href={`/batches/${id}`} class="jobs-link">
          {fileName ?? (model === '' ? t(endpoint as BatchEndpoint) : model)}
        </SiteLink>
        <p class="soft small">
          {fileName !== null && model !== '' && `${model} · `}
          {t(endpoint as BatchEndpoint)} · <Time value={toIso(createdAt)} style="ago" />
        </p>
      </div>
      <div class="jobs-state">
        <BatchBadge batch={batch} />
        <BatchProgress batch={batch} />
      </div>
      <div class="jobs-cost number">
        <Money value={cost} />
      </div>
    </li>
  );
}

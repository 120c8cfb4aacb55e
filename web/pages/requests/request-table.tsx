import { keepPreviousData, useQuery } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import type { components } from '../../generated/api.d.ts';
import type { ApiAccount } from '../../lib/accounts.ts';
import { api, call } from '../../lib/api.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Badge, Stat } from '../../ui/card.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { Pagination } from '../../ui/pagination.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { DownloadCsv } from './download-csv.tsx';
import type en from './messages.en.ts';
import { RequestDialog } from './request-dialog.tsx';
import { useRequestFilter, type RequestFilter } from './request-filter.ts';

export type RequestRow = components['schemas']['RequestLog'];

/** The requests that the filters select, with their sums. */
export function RequestTable({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const { filter, page, setPage } = useRequestFilter();
  const [shown, setShown] = useState<RequestRow | null>(null);
  const columns = useColumns(setShown);
  const query = useQuery({
    queryKey: ['request-logs', account.id, filter, page],
    queryFn: async ({ signal }) => {
      const log = await call(
        api.GET('/v1/web/api-accounts/{account_id}/request-logs', {
          params: { path: { account_id: account.id }, query: { ...filter, page } },
          signal,
        }),
      );
      if (typeof log === 'string') throw new TypeError('the log came as CSV');
      return log;
    },
    placeholderData: keepPreviousData,
    refetchInterval: page === 1 ? 15_000 : false,
  });
  return (
    <section class="card">
      <QueryView query={query} loading={<Skeleton lines={10} />}>
        {({ items, total_pages: pages, totals, has_exact_total: isExact }) => (
          <div class="requests-log">
            <div class="requests-totals">
              <Totals totals={totals} isExact={isExact} />
              <DownloadCsv account={account} filter={filter} isEmpty={items.length === 0} />
            </div>
            {items.length === 0 ? (
              <Nothing filter={filter} />
            ) : (
              <Table caption={t('title')} columns={columns} rows={items} keyOf={({ request_id: id }) => id} />
            )}
            <Pagination page={Math.min(page, Math.max(pages, 1))} pages={pages} onChange={setPage} />
          </div>
        )}
      </QueryView>
      {shown !== null && <RequestDialog row={shown} onClose={() => setShown(null)} />}
    </section>
  );
}

function Nothing({ filter }: { readonly filter: RequestFilter }) {
  const t = useMessages<typeof en>();
  const isFiltered = Object.keys(filter).length > 0;
  return (
    <EmptyState title={t(isFiltered ? 'nothingFound' : 'nothingYet')}>
      {t(isFiltered ? 'nothingFoundText' : 'nothingYetText')}
    </EmptyState>
  );
}

function Totals({
  totals,
  isExact,
}: {
  readonly totals: components['schemas']['RequestTotals'];
  readonly isExact: boolean;
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (
    <div class="stats">
      <Stat label={t('requests')} note={isExact ? undefined : t('newestOnly')}>
        {isExact
          ? format.number(totals.requests)
          : t('moreThan', { requests: format.number(totals.requests) })}
      </Stat>
      <Stat label={t('promptTokens')}>{format.number(totals.prompt_tokens)}</Stat>
      <Stat label={t('completionTokens')}>{format.number(totals.completion_tokens)}</Stat>
      <Stat label={t('cost')}>
        <Money value={totals.cost} />
      </Stat>
    </div>
  );
}

function useColumns(onShow: (row: RequestRow) => void): readonly Column<RequestRow>[] {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return [
    {
      name: t('time'),
      isHeader: true,
      render: (row) => (
        <button type="button" class="requests-open" onClick={() => onShow(row)}>
          <Time value={row.created_at} />
        </button>
      ),
    },
    { name: t('model'), render: ({ model_name: model }) => model },
    {
      name: t('outcome'),
      render: ({ success, response_code: code }) => (
        <Badge tone={success ? 'good' : 'bad'}>
          {success ? t('outcome_success') : t('failedWith', { code })}
        </Badge>
      ),
    },
    {
      name: t('tokens'),
      isNumber: true,
      render: ({ prompt_tokens: prompt, completion_tokens: completion }) =>
        t('inAndOut', { prompt: format.number(prompt), completion: format.number(completion) }),
    },
    { name: t('duration'), isNumber: true, render: ({ total_time: time }) => format.seconds(time) },
    {
      name: t('cost'),
      isNumber: true,
      render: ({ cost_request: cost, is_free_request: isFree }) =>
        isFree ? t('freeRequest') : <Money value={cost} />,
    },
  ];
}

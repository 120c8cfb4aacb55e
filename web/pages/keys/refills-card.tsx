import { keepPreviousData, useQuery } from '@tanstack/preact-query';
import { useSearchParams } from 'wouter-preact';
import type { components } from '../../generated/api.d.ts';
import type { ApiAccount } from '../../lib/accounts.ts';
import { api, call } from '../../lib/api.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Card } from '../../ui/card.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { Pagination } from '../../ui/pagination.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import type en from './messages.en.ts';

type Refill = components['schemas']['RefillLog'];

export const refillsKey = 'refills';
const pageSize = 10;

/** What was added to an account, page by page. The page is in the address. */
export function RefillsCard({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  return (
    <Card title={t('refills')}>
      {account.ban ? <p class="soft">{t('refillsWhileBanned')}</p> : <Refills account={account} />}
    </Card>
  );
}

const readPage = (text: string | null): number => Math.max(1, Math.trunc(Number(text ?? 1)) || 1);

function Refills({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const [params, setParams] = useSearchParams();
  const page = readPage(params.get('page'));
  const query = useQuery({
    queryKey: [refillsKey, account.id, page],
    queryFn: ({ signal }) =>
      call(
        api.GET('/v1/web/api-accounts/{account_id}/refill-logs', {
          params: { path: { account_id: account.id }, query: { page, page_size: pageSize } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });
  const turnTo = (next: number): void => {
    setParams((current) => {
      const changed = new URLSearchParams(current);
      if (next === 1) changed.delete('page');
      else changed.set('page', String(next));
      return changed;
    });
  };
  const columns = useColumns();
  return (
    <QueryView query={query} loading={<Skeleton lines={4} />}>
      {({ items, total_pages: pages }) =>
        items.length === 0 && page === 1 ? (
          <EmptyState title={t('noRefills')}>
            <p>{t('noRefillsText')}</p>
          </EmptyState>
        ) : (
          <div class="keys-refills">
            <Table caption={t('refills')} columns={columns} rows={items} keyOf={keyOfRefill} />
            <Pagination page={Math.min(page, Math.max(pages, 1))} pages={pages} onChange={turnTo} />
          </div>
        )
      }
    </QueryView>
  );
}

const keyOfRefill = ({ created_at, refill_code_redeemed, balance_added }: Refill): string =>
  `${created_at} ${refill_code_redeemed} ${balance_added}`;

function useColumns(): readonly Column<Refill>[] {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return [
    { name: t('time'), isHeader: true, render: ({ created_at }) => <Time value={created_at} /> },
    {
      name: t('added'),
      isNumber: true,
      render: ({ balance_added: sum }) => (Number(sum) === 0 ? '–' : <Money value={sum} />),
    },
    {
      name: t('addedFree'),
      isNumber: true,
      render: ({ free_requests_added: count }) => (count === 0 ? '–' : format.number(count)),
    },
    { name: t('source'), render: ({ source }) => t(`source_${source}`) },
    {
      name: t('detail'),
      render: ({ refill_code_redeemed: code, note }) => (code === '' ? (note ?? '') : <code>{code}</code>),
    },
  ];
}

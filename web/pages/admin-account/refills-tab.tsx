import { useState } from 'preact/hooks';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { SearchField } from '../../admin/search-field.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { Books } from './books.tsx';
import type en from './messages.en.ts';

type Refill = Schema<'AdminRefill'>;

/** Credits of operators, redeemed codes and the sign-up, newest first. */
export function RefillsTab({ accountId }: { readonly accountId: string }) {
  const t = useMessages<typeof en>();
  const columns = useColumns();
  const [search, setSearch] = useState('');
  const list = useCursorList(['account-refills', accountId, search], (after, signal) =>
    call(
      adminApi.GET('/v1/admin/accounts/{account_id}/refills', {
        params: {
          path: { account_id: accountId },
          query: {
            limit: 20,
            ...(search === '' ? {} : { search }),
            ...(after === null ? {} : { after }),
          },
        },
        signal,
      }),
    ),
  );
  return (
    <>
      <Books accountId={accountId} />
      <search class="admin-account-search">
        <SearchField
          label={t('searchRefills')}
          maxLength={100}
          defaultValue={search}
          onText={(text) => setSearch(text.trim())}
        />
      </search>
      <CursorListView
        list={list}
        empty={
          search === '' ? (
            <EmptyState title={t('noRefills')}>{t('noRefillsText')}</EmptyState>
          ) : (
            <EmptyState title={t('noSuchRefills')} />
          )
        }
      >
        {(rows) => <Table caption={t('tab_refills')} columns={columns} rows={rows} keyOf={({ id }) => id} />}
      </CursorListView>
    </>
  );
}

function useColumns(): readonly Column<Refill>[] {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return [
    { name: t('time'), isHeader: true, render: (refill) => <TimeAndMore refill={refill} /> },
    { name: t('amountAdded'), isNumber: true, render: ({ amount }) => <Money value={amount} /> },
    {
      name: t('freeRequests'),
      isNumber: true,
      isMinor: true,
      render: ({ free_requests: count }) => format.number(count),
    },
    { name: t('source'), isMinor: true, render: (refill) => <Source refill={refill} /> },
    { name: t('note'), isMinor: true, render: ({ note }) => note ?? <span class="soft">–</span> },
  ];
}

/** On a phone, also what has columns of its own elsewhere. */
function TimeAndMore({ refill }: { readonly refill: Refill }) {
  const t = useMessages<typeof en>();
  const { created_at: at, note, free_requests: count } = refill;
  return (
    <span class="admin-account-state">
      <Time value={at} />
      <span class="admin-account-beside">
        <Source refill={refill} />
        {count !== 0 && <div>{t('freeOf', { count })}</div>}
        {note}
      </span>
    </span>
  );
}

function Source({ refill: { source, code, token } }: { readonly refill: Refill }) {
  const t = useMessages<typeof en>();
  return (
    <>
      {t(`source_${source}`)} {code !== null && <code>{code}</code>}
      {token !== null && <div class="soft small">{token === 'command' ? t('byCommand') : token}</div>}
    </>
  );
}

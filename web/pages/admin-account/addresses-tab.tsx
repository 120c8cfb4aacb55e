import { useQuery } from '@tanstack/preact-query';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import type en from './messages.en.ts';

type Addresses = Schema<'AdminAccountAddresses'>;

/** Where its key was used lately: whoever has a leaked key calls from elsewhere. */
export function AddressesTab({ accountId }: { readonly accountId: string }) {
  const query = useQuery({
    queryKey: ['account-addresses', accountId],
    queryFn: ({ signal }) =>
      call(
        adminApi.GET('/v1/admin/accounts/{account_id}/addresses', {
          params: { path: { account_id: accountId } },
          signal,
        }),
      ),
  });
  return (
    <QueryView query={query} loading={<Skeleton lines={6} height="2rem" />}>
      {(addresses) => <View addresses={addresses} />}
    </QueryView>
  );
}

function View({ addresses }: { readonly addresses: Addresses }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const columns = useColumns();
  const { since, is_complete: isComplete, addresses: count, data } = addresses;
  if (data.length === 0) return <EmptyState title={t('noAddresses')}>{t('noAddressesText')}</EmptyState>;
  const notes = [
    t(isComplete ? 'addressesSince' : 'addressesOfNewest', { time: format.dateTime(since) }),
    count > data.length ? t('mostUsedOnly', { count }) : null,
  ].filter((note) => note !== null);
  return (
    <>
      <p class="soft small">{notes.join(' ')}</p>
      <Table caption={t('tab_addresses')} columns={columns} rows={data} keyOf={({ address }) => address} />
    </>
  );
}

function useColumns(): readonly Column<Addresses['data'][number]>[] {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return [
    { name: t('address'), isHeader: true, render: ({ address }) => <code>{address}</code> },
    {
      name: t('addressRequests'),
      isNumber: true,
      render: ({ requests, failed }) => (
        <>
          {format.number(requests)}
          {failed > 0 && <span class="admin-account-failed"> · {t('addressFailed', { count: failed })}</span>}
        </>
      ),
    },
    {
      name: t('firstRequest'),
      isMinor: true,
      render: ({ first_at: at }) => <Time value={at} style="recent" />,
    },
    { name: t('lastRequest'), render: ({ last_at: at }) => <Time value={at} style="recent" /> },
    { name: t('cost'), isNumber: true, render: ({ cost }) => <Money value={cost} /> },
  ];
}

import { NoAccount } from '../../frame/no-account.tsx';
import { useAccounts, type ApiAccount } from '../../lib/accounts.ts';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { useAccountInAddress } from './account-in-address.ts';
import { DailyTotals } from './daily-totals.tsx';
import type en from './messages.en.ts';
import { RequestLog } from './request-log.tsx';
import './requests.css';

export default function RequestsPage() {
  const t = useMessages<typeof en>();
  const { query, selected } = useAccounts();
  return (
    <div class="page requests">
      <header class="page-head">
        <div>
          <h1>{t('title')}</h1>
          <p>{t('intro')}</p>
        </div>
      </header>
      <QueryView query={query} loading={<Skeleton lines={8} height="3rem" />}>
        {(accounts) =>
          selected === null ? (
            <section class="card">
              <NoAccount title={t('noAccount')} action={t('toKeys')}>
                {t('noAccountText')}
              </NoAccount>
            </section>
          ) : (
            <Views accounts={accounts} selected={selected} />
          )
        }
      </QueryView>
    </div>
  );
}

function Views({
  accounts,
  selected,
}: {
  readonly accounts: readonly ApiAccount[];
  readonly selected: ApiAccount;
}) {
  const t = useMessages<typeof en>();
  const [params, change] = useAddressFilters();
  useAccountInAddress(accounts, selected);
  return (
    <Tabs
      label={t('title')}
      value={params.get('view') === 'days' ? 'days' : 'log'}
      onChange={(view) => change({ view: view === 'log' ? null : view, request: null })}
      list={[
        {
          value: 'log',
          label: t('viewLog'),
          content: (
            <div class="requests-view">
              <RequestLog key={selected.id} account={selected} />
            </div>
          ),
        },
        {
          value: 'days',
          label: t('viewDays'),
          content: (
            <div class="requests-view">
              <DailyTotals key={selected.id} account={selected} />
            </div>
          ),
        },
      ]}
    />
  );
}

import { useAccounts, type ApiAccount } from '../../lib/accounts.ts';
import { useMessages } from '../../lib/language.tsx';
import { SiteLink } from '../../frame/site-link.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { Filters } from './filters.tsx';
import type en from './messages.en.ts';
import './requests.css';
import { RequestTable } from './request-table.tsx';

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
      <QueryView query={query} loading={<Skeleton lines={8} />}>
        {() => (selected === null ? <NoAccount /> : <Log account={selected} />)}
      </QueryView>
    </div>
  );
}

const Log = ({ account }: { readonly account: ApiAccount }) => (
  <>
    <Filters />
    <RequestTable account={account} />
  </>
);

function NoAccount() {
  const t = useMessages<typeof en>();
  return (
    <section class="card">
      <EmptyState
        title={t('noAccount')}
        action={
          <SiteLink href="/keys" class="button primary medium">
            {t('toKeys')}
          </SiteLink>
        }
      >
        {t('noAccountText')}
      </EmptyState>
    </section>
  );
}

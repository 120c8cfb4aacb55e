import '../../admin/accounts/accounts.css';
import './admin-account.css';
import { useState } from 'preact/hooks';
import { SiteLink } from '../../frame/site-link.tsx';
import { ApiError } from '../../lib/api-error.ts';
import { useMessages } from '../../lib/language.tsx';
import { lazy } from '../../lib/lazy.tsx';
import type { PageProps } from '../../lib/pages.ts';
import { useTitle } from '../../lib/title.ts';
import { EmptyState, ErrorState, Skeleton } from '../../ui/states.tsx';
import { nameOf, useAccount } from './account.ts';
import { AccountHead } from './account-head.tsx';
import { AccountSettings } from './account-settings.tsx';
import { AccountStats } from './account-stats.tsx';
import { AccountTabs } from './account-tabs.tsx';
import type { DialogName } from './dialog-names.ts';
import type en from './messages.en.ts';

const AccountDialog = lazy(
  async () => (await import('./account-dialog.tsx')).AccountDialog,
  () => null,
);

export default function AdminAccountPage({ id }: PageProps) {
  const t = useMessages<typeof en>();
  return (
    <div class="page admin-account">
      <SiteLink href="/admin/accounts" class="admin-account-back">
        ← {t('allAccounts')}
      </SiteLink>
      <AccountView key={id} id={id} />
    </div>
  );
}

function AccountView({ id }: { readonly id: string }) {
  const t = useMessages<typeof en>();
  const query = useAccount(id);
  const account = query.data;
  const [dialog, setDialog] = useState<DialogName | null>(null);
  useTitle(account === undefined ? null : nameOf(account));
  if (account !== undefined)
    return (
      <>
        <AccountHead
          account={account}
          isFetching={query.isFetching}
          onRefresh={query.refetch}
          onOpen={setDialog}
        />
        <AccountStats account={account} />
        <AccountSettings account={account} onOpen={setDialog} />
        <AccountTabs account={account} />
        {dialog !== null && (
          <AccountDialog key={dialog} name={dialog} account={account} onClose={() => setDialog(null)} />
        )}
      </>
    );
  const isMissing = query.error instanceof ApiError && query.error.status === 404;
  return (
    <>
      <h1>{t('title')}</h1>
      <section class="card">
        {isMissing ? (
          <EmptyState
            title={t('noSuchAccount')}
            action={
              <SiteLink href="/admin/accounts" class="button secondary medium">
                {t('allAccounts')}
              </SiteLink>
            }
          >
            {t('noSuchAccountText')}
          </EmptyState>
        ) : query.error === null ? (
          <Skeleton lines={12} height="2.5rem" />
        ) : (
          <ErrorState error={query.error} onRetry={query.refetch} />
        )}
      </section>
    </>
  );
}

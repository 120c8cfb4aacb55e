import { AccountState } from '../../admin/accounts/account-state.tsx';
import { useMay } from '../../admin/session.ts';
import { useConsole } from '../../admin/texts.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Notice } from '../../ui/notice.tsx';
import { nameOf, type Account } from './account.ts';
import type { OpenDialog } from './dialog-names.ts';
import type en from './messages.en.ts';

export function AccountHead({
  account,
  isFetching,
  onRefresh,
  onOpen,
}: {
  readonly account: Account;
  readonly isFetching: boolean;
  readonly onRefresh: () => unknown;
  readonly onOpen: OpenDialog;
}) {
  const t = useMessages<typeof en>();
  const shared = useConsole();
  const name = nameOf(account);
  return (
    <>
      <header class="page-head">
        <div class="admin-account-name">
          <h1>{name}</h1>
          <AccountState account={account} />
          <p class="admin-account-id">
            <code>{account.id}</code>
            <CopyButton text={account.id} label={t('copyId')} />
          </p>
        </div>
        <div class="admin-account-actions">
          <Button
            icon="refresh"
            aria-label={shared('refresh')}
            busy={isFetching}
            onClick={() => onRefresh()}
          />
          <Actions account={account} onOpen={onOpen} />
        </div>
      </header>
      {account.banned && (
        <Notice tone="bad" title={t('bannedTitle')}>
          <p class="admin-account-reason">{account.ban_reason ?? t('noReason')}</p>
        </Notice>
      )}
    </>
  );
}

function Actions({ account, onOpen }: { readonly account: Account; readonly onOpen: OpenDialog }) {
  const t = useMessages<typeof en>();
  const mayCredit = useMay('billing');
  const mayChange = useMay('all');
  return (
    <>
      {mayChange && <Button onClick={() => onOpen('rotate')}>{t('rotate')}</Button>}
      {mayChange && (
        <Button onClick={() => onOpen(account.banned ? 'unban' : 'ban')}>
          {t(account.banned ? 'unban' : 'ban')}
        </Button>
      )}
      {mayCredit && (
        <Button kind="primary" icon="plus" onClick={() => onOpen('credit')}>
          {t('credit')}
        </Button>
      )}
    </>
  );
}

import { useState } from 'preact/hooks';
import { AccountState } from '../../admin/accounts/account-state.tsx';
import { ShownKeyDialog } from '../../admin/accounts/shown-key-dialog.tsx';
import { useMay } from '../../admin/session.ts';
import { useConsole } from '../../admin/texts.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Notice } from '../../ui/notice.tsx';
import { nameOf, type Account } from './account.ts';
import { BanDialog, UnbanDialog } from './ban-dialogs.tsx';
import { CreditDialog } from './credit-dialog.tsx';
import type en from './messages.en.ts';
import { RotateDialog } from './rotate-dialog.tsx';

type Action = 'credit' | 'rotate' | 'ban' | 'unban';

export function AccountHead({
  account,
  isFetching,
  onRefresh,
}: {
  readonly account: Account;
  readonly isFetching: boolean;
  readonly onRefresh: () => unknown;
}) {
  const t = useMessages<typeof en>();
  const shared = useConsole();
  const [action, setAction] = useState<Action | null>(null);
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
          <Actions account={account} onChoose={setAction} />
        </div>
      </header>
      {account.banned && (
        <Notice tone="bad" title={t('bannedTitle')}>
          <p class="admin-account-reason">{account.ban_reason ?? t('noReason')}</p>
        </Notice>
      )}
      <ActionDialogs account={account} action={action} onClose={() => setAction(null)} />
    </>
  );
}

function Actions({
  account,
  onChoose,
}: {
  readonly account: Account;
  readonly onChoose: (action: Action) => void;
}) {
  const t = useMessages<typeof en>();
  const mayCredit = useMay('billing');
  const mayChange = useMay('all');
  return (
    <>
      {mayChange && <Button onClick={() => onChoose('rotate')}>{t('rotate')}</Button>}
      {mayChange && (
        <Button onClick={() => onChoose(account.banned ? 'unban' : 'ban')}>
          {t(account.banned ? 'unban' : 'ban')}
        </Button>
      )}
      {mayCredit && (
        <Button kind="primary" icon="plus" onClick={() => onChoose('credit')}>
          {t('credit')}
        </Button>
      )}
    </>
  );
}

function ActionDialogs({
  account,
  action,
  onClose,
}: {
  readonly account: Account;
  readonly action: Action | null;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  const [apiKey, setApiKey] = useState<string | null>(null);
  const props = { account, onClose };
  return (
    <>
      {action === 'credit' && <CreditDialog {...props} />}
      {action === 'ban' && <BanDialog {...props} />}
      {action === 'unban' && <UnbanDialog {...props} />}
      {action === 'rotate' && <RotateDialog {...props} onKey={setApiKey} />}
      {apiKey !== null && (
        <ShownKeyDialog title={t('rotatedTitle')} apiKey={apiKey} onClose={() => setApiKey(null)}>
          <p>{t('rotatedText')}</p>
        </ShownKeyDialog>
      )}
    </>
  );
}

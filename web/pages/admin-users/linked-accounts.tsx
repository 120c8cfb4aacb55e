import { useState } from 'preact/hooks';
import { adminApi, call } from '../../admin/api.ts';
import { ConfirmAction } from '../../admin/confirm-action.tsx';
import { AccountLink } from '../../admin/links.tsx';
import { useMay } from '../../admin/session.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { Button } from '../../ui/button.tsx';
import { Money } from '../../ui/money.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { showToast } from '../../ui/toast.tsx';
import type en from './messages.en.ts';
import type { User } from './user-dialog.tsx';

type Account = User['accounts'][number];

export function LinkedAccounts({ user }: { readonly user: User }) {
  const t = useMessages<typeof en>();
  const [unlinked, setUnlinked] = useState<Account | null>(null);
  const columns = useColumns(setUnlinked);
  return (
    <section class="admin-users-part">
      <h3>{t('accounts')}</h3>
      {user.accounts.length === 0 ? (
        <p class="soft">{t('noAccounts')}</p>
      ) : (
        <Table caption={t('accounts')} keyOf={({ id }) => id} rows={user.accounts} columns={columns} />
      )}
      {unlinked !== null && (
        <Unlink account={unlinked} email={user.email} onClose={() => setUnlinked(null)} />
      )}
    </section>
  );
}

function useColumns(onUnlink: (account: Account) => void): readonly Column<Account>[] {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const mayUnlink = useMay('all');
  return [
    {
      name: t('account'),
      isHeader: true,
      render: ({ id, account_name: name, label, primary, banned }) => (
        <span class="admin-users-account">
          <AccountLink id={id} name={name ?? label} />
          {name !== null && name !== label && <span class="soft">{label}</span>}
          {primary && <Badge>{t('primary')}</Badge>}
          {banned && <Badge tone="bad">{t('banned')}</Badge>}
        </span>
      ),
    },
    {
      name: t('key'),
      isMinor: true,
      render: ({ key }) => (key === null ? '–' : <code class="admin-users-key">{key}</code>),
    },
    { name: t('balance'), isNumber: true, render: ({ balance }) => <Money value={balance} /> },
    {
      name: t('freeRequests'),
      isNumber: true,
      isMinor: true,
      render: ({ free_requests: count }) => format.number(count),
    },
    ...(mayUnlink
      ? [
          {
            name: t('actions'),
            render: (account: Account) => (
              <Button
                size="small"
                aria-label={t('unlinkOne', { label: account.label })}
                onClick={() => onUnlink(account)}
              >
                {t('unlink')}
              </Button>
            ),
          },
        ]
      : []),
  ];
}

function Unlink({
  account: { id, label },
  email,
  onClose,
}: {
  readonly account: Account;
  readonly email: string;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  return (
    <ConfirmAction
      title={t('unlinkTitle', { label })}
      action={t('unlink')}
      run={() =>
        call(
          adminApi.POST('/v1/admin/accounts/{account_id}/unlink', { params: { path: { account_id: id } } }),
        )
      }
      onDone={() => {
        onClose();
        showToast(t('unlinkedNow', { label }));
      }}
      onClose={onClose}
    >
      <p>{t('unlinkText', { email })}</p>
    </ConfirmAction>
  );
}

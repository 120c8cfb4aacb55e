import { useState } from 'preact/hooks';
import { UnlinkAccount } from '../../admin/accounts/unlink-account.tsx';
import { AccountLink } from '../../admin/links.tsx';
import { useMay } from '../../admin/session.ts';
import { useConsole } from '../../admin/texts.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { Button } from '../../ui/button.tsx';
import { Money } from '../../ui/money.tsx';
import { Table, type Column } from '../../ui/table.tsx';
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
        <UnlinkAccount id={unlinked.id} name={unlinked.label} onClose={() => setUnlinked(null)} />
      )}
    </section>
  );
}

function useColumns(onUnlink: (account: Account) => void): readonly Column<Account>[] {
  const t = useMessages<typeof en>();
  const shared = useConsole();
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
                {shared('unlink')}
              </Button>
            ),
          },
        ]
      : []),
  ];
}

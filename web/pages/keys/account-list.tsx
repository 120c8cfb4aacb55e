import { switchAccount, type ApiAccount } from '../../lib/accounts.ts';
import { useMessages } from '../../lib/language.tsx';
import { Card } from '../../ui/card.tsx';
import { Money } from '../../ui/money.tsx';
import { AccountBadges } from './account-badges.tsx';
import type en from './messages.en.ts';

/** All accounts, of which one is shown below. */
export function AccountList({
  accounts,
  selected,
}: {
  readonly accounts: readonly ApiAccount[];
  readonly selected: ApiAccount;
}) {
  const t = useMessages<typeof en>();
  return (
    <Card title={t('yourAccounts')}>
      <ul class="keys-accounts">
        {accounts.map((account) => (
          <li key={account.id}>
            <button
              type="button"
              class="keys-account"
              aria-pressed={account.id === selected.id}
              onClick={() => switchAccount(account.id)}
            >
              <span class="keys-account-name">
                <span>{account.label}</span>
                <AccountBadges account={account} />
              </span>
              <code class="soft">{account.key_masked}</code>
              <Money value={account.balance} />
            </button>
          </li>
        ))}
      </ul>
    </Card>
  );
}

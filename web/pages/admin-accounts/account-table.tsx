import { AccountState } from '../../admin/accounts/account-state.tsx';
import type { Account } from '../../admin/accounts/account-draft.ts';
import { AccountLink, shortId } from '../../admin/links.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import type en from './messages.en.ts';

export function AccountTable({ rows }: { readonly rows: readonly Account[] }) {
  const t = useMessages<typeof en>();
  return <Table caption={t('title')} columns={useColumns()} rows={rows} keyOf={({ id }) => id} />;
}

function useColumns(): readonly Column<Account>[] {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return [
    { name: t('account'), isHeader: true, render: (account) => <Who account={account} /> },
    {
      name: t('id'),
      isMinor: true,
      // The id of an account without a name is in its place.
      render: ({ id, name, email }) =>
        (name ?? email) !== null && (
          <code class="admin-accounts-id" title={id}>
            {shortId(id)}
          </code>
        ),
    },
    { name: t('state'), isMinor: true, render: (account) => <AccountState account={account} /> },
    { name: t('balance'), isNumber: true, render: ({ balance }) => <Money value={balance} /> },
    {
      name: t('freeRequests'),
      isNumber: true,
      isMinor: true,
      render: ({ free_requests: count }) =>
        count === 0 ? <span class="soft">0</span> : format.number(count),
    },
    { name: t('limits'), isMinor: true, render: (account) => <Limits account={account} /> },
    {
      name: t('lastUsed'),
      isMinor: true,
      render: ({ last_used_at: at }) =>
        at === null ? <span class="soft">{t('never')}</span> : <Time value={at} style="ago" />,
    },
    {
      name: t('created'),
      isMinor: true,
      render: ({ created_at: at }) => (
        <time dateTime={at} title={format.exactTime(at)} class="admin-accounts-date">
          {format.date(at)}
        </time>
      ),
    },
  ];
}

/** Whom it belongs to, as far as operators have noted it. */
function Who({ account }: { readonly account: Account }) {
  const { id, name, email, note } = account;
  return (
    <div class="admin-accounts-who">
      <AccountLink id={id} name={name ?? email} />
      {name !== null && email !== null && <span class="soft">{email}</span>}
      {note !== null && (
        <span class="admin-accounts-note" title={note}>
          {note}
        </span>
      )}
      <span class="admin-accounts-beside">
        <AccountState account={account} />
      </span>
    </div>
  );
}

function Limits({ account }: { readonly account: Account }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { budget, models, addresses, tokens_per_minute: tokens } = account;
  return (
    <div class="admin-accounts-limits">
      <span>{t('rpm', { count: account.requests_per_minute })}</span>
      {tokens !== null && <span>{t('tpm', { tokens: format.short(tokens) })}</span>}
      {budget !== null && <span>{t(`per_${budget.period}`, { amount: format.price(budget.amount) })}</span>}
      {models !== null && <span>{t('models', { count: models.length })}</span>}
      {addresses !== null && <span>{t('addresses', { count: addresses.length })}</span>}
    </div>
  );
}

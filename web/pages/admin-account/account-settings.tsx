import type { ComponentChildren } from 'preact';
import { UserLink } from '../../admin/links.tsx';
import { useMay } from '../../admin/session.ts';
import { useConsole } from '../../admin/texts.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Fact } from '../../ui/fact.tsx';
import type { Account } from './account.ts';
import type { OpenDialog, SettingsGroup } from './dialog-names.ts';
import type en from './messages.en.ts';

/** What operators have set, in groups that are changed one by one. */
export function AccountSettings({
  account,
  onOpen,
}: {
  readonly account: Account;
  readonly onOpen: OpenDialog;
}) {
  const t = useMessages<typeof en>();
  return (
    <section class="card" aria-label={t('settings')}>
      <div class="admin-account-settings">
        <Part group="owner" onOpen={onOpen}>
          <OwnerFacts account={account} onUnlink={() => onOpen('unlink')} />
        </Part>
        <Part group="limits" onOpen={onOpen}>
          <LimitFacts account={account} />
        </Part>
        <Part group="money" onOpen={onOpen}>
          <MoneyFacts account={account} />
        </Part>
        <Part group="access" onOpen={onOpen}>
          <AccessFacts account={account} onShowSecret={() => onOpen('webhook')} />
        </Part>
      </div>
    </section>
  );
}

function Part({
  group,
  onOpen,
  children,
}: {
  readonly group: SettingsGroup;
  readonly onOpen: OpenDialog;
  readonly children: ComponentChildren;
}) {
  const t = useMessages<typeof en>();
  const mayChange = useMay('all');
  const title = t(`group_${group}`);
  return (
    <div class="admin-account-part">
      <header class="card-head">
        <h2>{title}</h2>
        {mayChange && (
          <Button
            kind="quiet"
            size="small"
            aria-label={t('changeGroup', { group: title })}
            onClick={() => onOpen(group)}
          >
            {t('change')}
          </Button>
        )}
      </header>
      <dl class="admin-account-facts">{children}</dl>
    </div>
  );
}

const Unset = ({ children }: { readonly children: ComponentChildren }) => (
  <span class="soft">{children}</span>
);

function OwnerFacts({ account, onUnlink }: { readonly account: Account; readonly onUnlink: () => void }) {
  const t = useMessages<typeof en>();
  const shared = useConsole();
  const mayUnlink = useMay('all');
  const { name, email, note, user_id: userId, user_email: userEmail, user_type: type } = account;
  return (
    <>
      <Fact name={t('setting_name')}>{name ?? <Unset>–</Unset>}</Fact>
      <Fact name={t('setting_email')}>{email ?? <Unset>–</Unset>}</Fact>
      <Fact name={t('linkedUser')}>
        {userId === null ? (
          <Unset>{t('notLinked')}</Unset>
        ) : (
          <span class="admin-account-user">
            <UserLink id={userId} name={userEmail} />
            {mayUnlink && (
              <Button kind="quiet" size="small" onClick={onUnlink}>
                {shared('unlink')}
              </Button>
            )}
          </span>
        )}
      </Fact>
      <Fact name={t('setting_note')}>{note ?? <Unset>–</Unset>}</Fact>
      {type !== 'default' && <Fact name={t('setting_user_type')}>{type}</Fact>}
    </>
  );
}

function LimitFacts({ account }: { readonly account: Account }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { tokens_per_minute: tokens } = account;
  return (
    <>
      <Fact name={t('setting_requests_per_minute')}>{format.number(account.requests_per_minute)}</Fact>
      <Fact name={t('setting_tokens_per_minute')}>
        {tokens === null ? <Unset>{t('unlimited')}</Unset> : format.number(tokens)}
      </Fact>
      <Fact name={t('setting_max_queued_jobs')}>{format.number(account.max_queued_jobs)}</Fact>
      <Fact name={t('setting_weight')}>{format.number(account.weight)}</Fact>
    </>
  );
}

function MoneyFacts({ account }: { readonly account: Account }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { budget, owner_budget: ownerBudget, low_balance: threshold } = account;
  const write = ({ amount, period }: NonNullable<Account['budget']>): string =>
    t(`per_${period}`, { amount: format.price(amount) });
  return (
    <>
      <Fact name={t('budgetOfOperator')}>
        {budget === null ? <Unset>{t('unlimited')}</Unset> : write(budget)}
      </Fact>
      <Fact name={t('budgetOfOwner')}>
        {ownerBudget === null ? <Unset>{t('unlimited')}</Unset> : write(ownerBudget)}
      </Fact>
      <Fact name={t('lowBalance')}>
        {threshold === null ? (
          <Unset>{t('noMail')}</Unset>
        ) : (
          t('lowBalanceBelow', { amount: format.price(threshold) })
        )}
      </Fact>
    </>
  );
}

function AccessFacts({
  account,
  onShowSecret,
}: {
  readonly account: Account;
  readonly onShowSecret: () => void;
}) {
  const t = useMessages<typeof en>();
  const mayShow = useMay('all');
  const { models, owner_models: ownerModels, addresses, expires_at: expiresAt } = account;
  return (
    <>
      <Fact name={t('setting_models')}>
        {models === null ? <Unset>{t('allModels')}</Unset> : <Tags values={models} />}
      </Fact>
      {ownerModels !== null && (
        <Fact name={t('ownerModels')}>
          <Tags values={ownerModels} />
        </Fact>
      )}
      <Fact name={t('setting_addresses')}>
        {addresses === null ? <Unset>{t('anywhere')}</Unset> : <Tags values={addresses} />}
      </Fact>
      <Fact name={t('setting_expires_at')}>
        <Expiry at={expiresAt} />
      </Fact>
      {mayShow && (
        <Fact name={t('webhookSecret')}>
          <span class="admin-account-user">
            <code>whsec_••••</code>
            <Button kind="quiet" size="small" onClick={onShowSecret}>
              {t('webhookOpen')}
            </Button>
          </span>
        </Fact>
      )}
    </>
  );
}

function Expiry({ at }: { readonly at: string | null }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  if (at === null) return <Unset>{t('noExpiry')}</Unset>;
  return (
    <time dateTime={at} title={format.exactTime(at)}>
      {format.dateTime(at)}
    </time>
  );
}

const maxShown = 6;

function Tags({ values }: { readonly values: readonly string[] }) {
  const t = useMessages<typeof en>();
  const rest = values.length - maxShown;
  return (
    <ul class="admin-account-tags" title={rest > 0 ? values.join(', ') : undefined}>
      {values.slice(0, maxShown).map((value) => (
        <li key={value} class="tag">
          {value}
        </li>
      ))}
      {rest > 0 && <li class="small soft">{t('andMore', { more: rest })}</li>}
    </ul>
  );
}

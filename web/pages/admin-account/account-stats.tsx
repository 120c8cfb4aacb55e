import { usedOf } from '../../admin/accounts/account-state.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Stat } from '../../ui/card.tsx';
import { Money, Time } from '../../ui/money.tsx';
import { Progress } from '../../ui/progress.tsx';
import type { Account } from './account.ts';
import type en from './messages.en.ts';

type Budget = NonNullable<Account['budget']>;

/** What support looks at first. */
export function AccountStats({ account }: { readonly account: Account }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { budget, owner_budget: ownerBudget } = account;
  return (
    <section class="card">
      <div class="stats">
        <Stat label={t('balance')} note={<BalanceNote account={account} />}>
          <Money value={account.balance} />
        </Stat>
        <Stat label={t('freeRequests')} note={t('freeRequestsNote')}>
          {format.number(account.free_requests)}
        </Stat>
        {budget !== null && <BudgetStat label={t('budgetOfOperator')} budget={budget} />}
        {ownerBudget !== null && <BudgetStat label={t('budgetOfOwner')} budget={ownerBudget} />}
        <Stat label={t('lastUsed')} note={<TimeNote name="createdOn" at={account.created_at} />}>
          {account.last_used_at === null ? t('never') : <Time value={account.last_used_at} style="ago" />}
        </Stat>
      </div>
    </section>
  );
}

function BalanceNote({ account }: { readonly account: Account }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { balance, reserved, total_balance_added: added, low_balance: threshold } = account;
  return (
    <>
      {reserved > 0 && <>{t('reservedPart', { amount: format.money(reserved) })}, </>}
      {threshold !== null && balance < threshold ? (
        <span class="admin-account-less">{t('belowThreshold', { amount: format.price(threshold) })}</span>
      ) : (
        t('addedInTotal', { amount: format.money(added) })
      )}
    </>
  );
}

function TimeNote({ name, at }: { readonly name: 'createdOn' | 'resets'; readonly at: string }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (
    <time dateTime={at} title={format.exactTime(at)}>
      {t(name, { time: format.dateTime(at) })}
    </time>
  );
}

function BudgetStat({ label, budget }: { readonly label: string; readonly budget: Budget }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const used = usedOf(budget);
  // More than all of it: it was lowered, or a response cost more than was reserved for it.
  const share = budget.amount === 0 ? 1 : used / budget.amount;
  return (
    <div class="stat">
      <p class="stat-label">{label}</p>
      <p class="stat-value">
        <Money value={used} /> <span class="admin-account-share">{format.percent(share)}</span>
      </p>
      <Progress share={Math.min(1, share)} label={label} isLimit />
      <p class="stat-note">
        {t(`per_${budget.period}`, { amount: format.price(budget.amount) })}
        {budget.reserved > 0 && <>, {t('reservedPart', { amount: format.money(budget.reserved) })}</>}
      </p>
      <p class="stat-note">
        <TimeNote name="resets" at={budget.resets_at} />
      </p>
    </div>
  );
}

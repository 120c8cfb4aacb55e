import { useMessages } from '../../lib/language.tsx';
import { useFormat } from '../../lib/format.ts';
import { Badge } from '../../ui/card.tsx';
import type texts from './texts.en.ts';
import type { Account } from './account-draft.ts';

type Budget = NonNullable<Account['budget']>;

/** What counts against a budget, in roubles: what runs is reserved. */
export const usedOf = ({ spent, reserved }: Budget): number => spent + reserved;

const isUsedUp = (budget: Budget | null): boolean => budget !== null && usedOf(budget) >= budget.amount;

/** Why the requests of an account are refused, or that they are not. */
export function AccountState({ account }: { readonly account: Account }) {
  const t = useMessages<typeof texts>();
  const format = useFormat();
  const { expires_at: expiresAt } = account;
  const isExpired = expiresAt !== null && Date.parse(expiresAt) <= Date.now();
  const hasNothing = account.balance <= 0 && account.free_requests === 0;
  const isBudgetUsed = isUsedUp(account.budget) || isUsedUp(account.owner_budget);
  return (
    <span class="account-state">
      {account.banned && <Badge tone="bad">{t('state_banned')}</Badge>}
      {isExpired && <Badge tone="bad">{t('state_expired')}</Badge>}
      {isBudgetUsed && <Badge tone="warning">{t('state_budgetUsed')}</Badge>}
      {hasNothing && <Badge tone="warning">{t('state_empty')}</Badge>}
      {!account.banned && !isExpired && !isBudgetUsed && !hasNothing && (
        <Badge tone="good">{t('state_active')}</Badge>
      )}
      {!isExpired && expiresAt !== null && (
        <Badge>{t('state_until', { date: format.date(expiresAt) })}</Badge>
      )}
    </span>
  );
}

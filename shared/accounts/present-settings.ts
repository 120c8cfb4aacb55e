// decision 0096
import { toRubNumber } from '../encoding/money.ts';
import type { AccountSettings, Restrictions } from './account-settings.ts';
import type { BudgetPeriod, HotBudget } from './budget-periods.ts';

/** A budget and the sums of its current period, in roubles. */
export interface PresentedBudget {
  readonly amount: number;
  readonly period: BudgetPeriod;
  readonly spent: number;
  readonly reserved: number;
  readonly resets_at: string;
}

const presentBudget = (budget: HotBudget | null): PresentedBudget | null =>
  budget === null
    ? null
    : {
        amount: toRubNumber(budget.amountNano),
        period: budget.period,
        spent: toRubNumber(budget.spentNano),
        reserved: toRubNumber(budget.reservedNano),
        resets_at: budget.resetsAt.toISOString(),
      };

const copy = (list: readonly string[] | null): string[] | null => (list === null ? null : [...list]);

/** Presents what restricts an account to its owner and its operator. Null for what does not. */
export const presentRestrictions = (restrictions: Restrictions) => ({
  budget: presentBudget(restrictions.budget),
  owner_budget: presentBudget(restrictions.ownerBudget),
  models: copy(restrictions.models),
  owner_models: copy(restrictions.ownerModels),
  addresses: copy(restrictions.addresses),
  expires_at: restrictions.expiresAt?.toISOString() ?? null,
  tokens_per_minute: restrictions.tokensPerMinute,
  low_balance: restrictions.lowBalanceNano === null ? null : toRubNumber(restrictions.lowBalanceNano),
});

/**
 * Presents all settings of an account to its operator.
 * @param stored who it belongs to, which only MongoDB has; null if it is gone
 */
export const presentSettings = (
  stored: Pick<AccountSettings, 'name' | 'email' | 'note'> | null,
  restrictions: Restrictions,
) => ({
  name: stored?.name ?? null,
  email: stored?.email ?? null,
  note: stored?.note ?? null,
  ...presentRestrictions(restrictions),
});

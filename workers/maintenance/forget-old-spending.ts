// decision 0096
import type { AccountStore } from '../../shared/accounts/account-store.ts';
import { dayMs, nameDay, toDay } from '../../shared/accounts/budget-periods.ts';

/** More than a month, which is the longest period of a budget. */
const keptDays = 40;
/** Also days that were missed because no worker ran. */
const forgottenDays = 10;

/** Forgets what accounts spent on days that no budget counts any more. */
export async function forgetOldSpending(accounts: AccountStore): Promise<void> {
  const newest = toDay(Date.now() - keptDays * dayMs);
  await accounts.forgetSpending(Array.from({ length: forgottenDays }, (_, i) => nameDay(newest - i)));
}

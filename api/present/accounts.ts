import type { UserBalance } from '../../shared/contract/users.ts';
import type { HotAccount } from '../../shared/billing/hot-account-store.ts';
import { toRubNumber } from '../../shared/pricing/money.ts';

export function presentProfile(account: HotAccount): UserBalance {
  return {
    id: account.id,
    user_type: account.userType,
    ...(account.lastUsedAt === null ? {} : { last_used_at: account.lastUsedAt.toISOString() }),
    balance: toRubNumber(account.balanceNano),
    total_balance_added: toRubNumber(account.totalAddedNano),
    free_requests: account.freeRequests,
    requests_per_minute: account.requestsPerMinute,
  };
}

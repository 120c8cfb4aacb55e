import type { Claim } from '../../shared/accounts/refill-code-store.ts';
import type { RedeemResponse, UserBalance } from '../../shared/contract/users.ts';
import type { HotAccount, RecentUse } from '../../shared/billing/hot-account-store.ts';
import { toRubNumber } from '../../shared/pricing/money.ts';

export function presentProfile(account: HotAccount, { requests, costNano }: RecentUse): UserBalance {
  return {
    ...presentBalance(account),
    request_count_last_hour: requests,
    total_cost_request_last_hour: toRubNumber(costNano),
    average_rpm: Number((requests / 60).toFixed(4)),
    requests_per_minute: account.requestsPerMinute,
  };
}

export function presentRedeemed(account: HotAccount, claim: Claim): RedeemResponse {
  return {
    ...presentBalance(account),
    add_balance: toRubNumber(claim.amountNano),
    add_free_requests: claim.freeRequests,
  };
}

function presentBalance(account: HotAccount) {
  return {
    id: account.id,
    user_type: account.userType,
    ...(account.lastUsedAt === null ? {} : { last_used_at: account.lastUsedAt.toISOString() }),
    balance: toRubNumber(account.balanceNano),
    total_balance_added: toRubNumber(account.totalAddedNano),
    free_requests: account.freeRequests,
  };
}

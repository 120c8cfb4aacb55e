import type { RedemptionClaim } from '../../shared/accounts/refill-code-store.ts';
import type { RedeemResponse, UserBalance } from '../contract/users.ts';
import type { HotAccount, LastHourOfUse } from '../../shared/accounts/hot-account-store.ts';
import { presentRestrictions } from '../../shared/accounts/present-settings.ts';
import { toRubNumber } from '../../shared/encoding/money.ts';

/** Requests per minute over the last hour. */
export const averageRpm = ({ requests }: LastHourOfUse): number => Number((requests / 60).toFixed(4));

export function presentProfile(account: HotAccount, recent: LastHourOfUse): UserBalance {
  return {
    ...presentBalance(account),
    request_count_last_hour: recent.requests,
    total_cost_request_last_hour: toRubNumber(recent.costNano),
    average_rpm: averageRpm(recent),
    requests_per_minute: account.requestsPerMinute,
    ...withoutNulls(presentRestrictions(account.restrictions)),
  };
}

/** Leaves out what does not restrict the account. */
const withoutNulls = <T extends object>(fields: T) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)) as {
    [Name in keyof T]?: NonNullable<T[Name]>;
  };

export function presentRedeemed(account: HotAccount, claim: RedemptionClaim): RedeemResponse {
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

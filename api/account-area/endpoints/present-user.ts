import type { ApiAccount, RedeemedRefillCode } from '../../contract/web-accounts.ts';
import type { WebUser as WebUserBody } from '../../contract/web-auth.ts';
import type { Session } from '../../contract/web-sessions.ts';
import { maskApiKey } from '../../../shared/accounts/credentials.ts';
import type { AccountDocument } from '../../../shared/accounts/account-store.ts';
import type { RedemptionClaim } from '../../../shared/accounts/refill-code-store.ts';
import type { HotAccount, LastHourOfUse } from '../../../shared/accounts/hot-account-store.ts';
import type { HotBudget } from '../../../shared/accounts/budget-periods.ts';
import { formatRub } from '../../../shared/encoding/money.ts';
import type { WebLink, WebSession, WebUser } from '../../../shared/account-area/web-models.ts';
import { averageRpm } from '../../endpoints/present-account.ts';

export function presentWebUser(user: WebUser): WebUserBody {
  return {
    id: user._id,
    email: user.email,
    timezone: user.timezone,
    created_at: user.createdAt.toISOString(),
    last_login_at: user.lastLoginAt?.toISOString() ?? null,
  };
}

export function presentSession(session: WebSession, currentId: string): Session {
  return {
    id: session._id,
    current: session._id === currentId,
    remember_me: session.rememberMe,
    os_name: session.osName,
    browser_name: session.browserName,
    device_type: session.deviceType,
    ip_created: session.ipCreated,
    ip_last_used: session.ipLastUsed,
    created_at: session.createdAt.toISOString(),
    last_used_at: session.lastUsedAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
  };
}

/** The data of a linked account: its link, its balance from Redis, and its document from MongoDB. */
export interface AccountView {
  readonly link: WebLink;
  readonly isPrimary: boolean;
  readonly account: HotAccount;
  readonly recent: LastHourOfUse;
  /** Null if the account is no longer in MongoDB. */
  readonly document: Pick<AccountDocument, 'keyHash' | 'keyMasked'> | null;
}

export function presentApiAccount({ link, isPrimary, account, recent, document }: AccountView): ApiAccount {
  return {
    id: link._id,
    user_balance_id: account.id,
    label: link.label,
    is_primary: isPrimary,
    balance: formatRub(account.balanceNano),
    total_balance_added: formatRub(account.totalAddedNano),
    free_requests: account.freeRequests,
    user_type: account.userType,
    ban: account.banned,
    key_id: document === null ? null : keyIdOf(document.keyHash),
    key_label: null,
    key_masked: document?.keyMasked ?? null,
    key_active: document !== null && !account.banned,
    average_rpm: averageRpm(recent),
    requests_per_minute: account.requestsPerMinute,
    total_cost_request_last_hour: formatRub(recent.costNano),
    ...presentLimits(account),
  };
}

function presentLimits({ restrictions }: HotAccount) {
  const { budget, ownerBudget, models, ownerModels, addresses, expiresAt } = restrictions;
  const copy = (list: readonly string[] | null): string[] | null => (list === null ? null : [...list]);
  return {
    budget: presentBudget(ownerBudget),
    models: copy(ownerModels),
    low_balance: restrictions.lowBalanceNano === null ? null : formatRub(restrictions.lowBalanceNano),
    limits: {
      budget: presentBudget(budget),
      models: copy(models),
      addresses: copy(addresses),
      expires_at: expiresAt?.toISOString() ?? null,
      tokens_per_minute: restrictions.tokensPerMinute,
    },
  };
}

const presentBudget = (budget: HotBudget | null) =>
  budget === null
    ? null
    : {
        amount: formatRub(budget.amountNano),
        period: budget.period,
        spent: formatRub(budget.spentNano),
        reserved: formatRub(budget.reservedNano),
        resets_at: budget.resetsAt.toISOString(),
      };

/** Returns 31 bits of the key's hash. They differ between keys and reveal nothing about the key. */
function keyIdOf(keyHash: string): number {
  return Buffer.from(keyHash, 'base64url').readUInt32BE(0) >>> 1;
}

export function presentRedeemedCode(account: HotAccount, claim: RedemptionClaim): RedeemedRefillCode {
  return {
    balance_added: formatRub(claim.amountNano),
    free_requests_added: claim.freeRequests,
    balance: formatRub(account.balanceNano),
    total_balance_added: formatRub(account.totalAddedNano),
    free_requests: account.freeRequests,
  };
}

/** Presents a new account without reading it. Its signup grant may not have been credited yet. */
export function presentNewAccount(link: WebLink, apiKey: string): ApiAccount {
  return {
    id: link._id,
    user_balance_id: link.accountId,
    label: link.label,
    is_primary: true,
    balance: '0',
    total_balance_added: '0',
    free_requests: 0,
    user_type: 'default',
    ban: false,
    key_masked: maskApiKey(apiKey),
    key_active: true,
  };
}

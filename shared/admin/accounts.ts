import { randomUUID } from 'node:crypto';
import type { AccountChange, AccountDocument } from '../accounts/account-store.ts';
import { changeAccount } from '../accounts/change-account.ts';
import type { HotAccount } from '../accounts/hot-account-store.ts';
import { replaceKey } from '../accounts/replace-key.ts';
import { runRefill } from '../accounts/refill-script.ts';
import type { SearchedFields } from '../accounts/search-words.ts';
import { resetUnknownCodes } from '../accounts/unknown-code-script.ts';
import { AppError } from '../contract/errors.ts';
import { maxBalanceNano, toRubNumber } from '../encoding/money.ts';
import { createRefillEvent } from '../ledger/usage-event.ts';
import { mapBounded } from '../platform/runtime/map-bounded.ts';
import type { AdminDeps } from './admin-deps.ts';
import type { AuditTrail } from './audit-trail.ts';
import type { Page } from './page.ts';

/** Accounts of a list that are read from Redis at the same time. */
const maxReads = 16;

/** An account as shown to operators. What operators wrote is stored only in MongoDB. */
export function describeAccount(account: HotAccount, stored: AccountDocument | null) {
  return {
    id: account.id,
    name: stored?.name ?? null,
    email: stored?.email ?? null,
    note: stored?.note ?? null,
    user_type: account.userType,
    balance: toRubNumber(account.balanceNano),
    total_balance_added: toRubNumber(account.totalAddedNano),
    free_requests: account.freeRequests,
    requests_per_minute: account.requestsPerMinute,
    max_queued_jobs: account.maxQueuedJobs,
    weight: account.weight,
    last_used_at: account.lastUsedAt?.toISOString() ?? null,
    banned: account.banned,
    ban_reason: account.banned ? (stored?.banReason ?? null) : null,
    created_at: account.createdAt.toISOString(),
  };
}
export type DescribedAccount = ReturnType<typeof describeAccount>;

export interface NewOperatorAccount extends SearchedFields {
  readonly amountNano: bigint;
  readonly freeRequests: number;
  readonly requestsPerMinute: number;
  readonly userType: string;
}

/** Creates an account with money and limits. @returns its key, which is returned only here */
export async function createAccount(
  deps: Pick<AdminDeps, 'accounts' | 'hotAccounts' | 'redis'>,
  trail: AuditTrail,
  { amountNano, freeRequests, ...settings }: NewOperatorAccount,
): Promise<{ account: DescribedAccount; apiKey: string }> {
  const { accounts, hotAccounts, redis } = deps;
  if (amountNano > maxBalanceNano)
    throw new AppError('validation_failed', { message: 'A balance cannot exceed 9 000 000 roubles.' });
  const id = randomUUID();
  return await trail.run(
    { action: 'account.create', id },
    async () => {
      const apiKey = await accounts.createWithId(id, settings);
      if (apiKey === null) throw new Error(`The account ${id} exists already.`);
      await hotAccounts.load(id);
      if (amountNano > 0n || freeRequests > 0) {
        const event = createRefillEvent(`create-${id}`, id, 'admin');
        await runRefill(redis, { amountNano, freeRequests, event });
      }
      return { account: describeAccount(await hotAccounts.get(id), await accounts.findById(id)), apiKey };
    },
    ({ account }) => account,
  );
}

/** @returns null if there is no such account */
export async function showAccount(
  deps: Pick<AdminDeps, 'accounts' | 'hotAccounts' | 'web'>,
  id: string,
): Promise<(DescribedAccount & AccountOwner) | null> {
  const [stored, owner] = await Promise.all([deps.accounts.findById(id), describeOwner(deps, id)]);
  return stored === null ? null : { ...describeAccount(await deps.hotAccounts.get(id), stored), ...owner };
}

/** The user of the account area to whom an account is linked; null if nobody has linked it. */
interface AccountOwner {
  /** The id of that link. */
  readonly link: number | null;
  readonly user_id: string | null;
  readonly user_email: string | null;
}

async function describeOwner({ web }: Pick<AdminDeps, 'web'>, accountId: string): Promise<AccountOwner> {
  const link = await web.links.findByAccount(accountId);
  const user = link === null ? null : await web.users.findById(link.userId);
  return { link: link?._id ?? null, user_id: user?._id ?? null, user_email: user?.email ?? null };
}

/** Describes the accounts of a page of documents. */
export async function describePage(
  { hotAccounts }: Pick<AdminDeps, 'hotAccounts'>,
  page: Page<AccountDocument>,
): Promise<Page<DescribedAccount>> {
  const rows = await mapBounded(page.rows, maxReads, async (stored) =>
    describeAccount(await hotAccounts.get(stored._id), stored),
  );
  return { ...page, rows };
}

/** Changes settings of an account. Takes effect within a second. */
export async function updateAccount(
  deps: Pick<AdminDeps, 'redis' | 'accounts' | 'hotAccounts'>,
  trail: AuditTrail,
  id: string,
  change: AccountChange,
): Promise<void> {
  const stored = await deps.accounts.findById(id);
  const before = Object.fromEntries(
    Object.keys(change).map((name) => [name, stored?.[name as keyof AccountChange] ?? null]),
  );
  await trail.run(
    { action: 'account.update', id, before },
    () => changeAccount(deps, id, change),
    () => change,
  );
}

/** Bans an account: refuses its requests, and ends those in progress. */
export async function banAccount(
  deps: Pick<AdminDeps, 'redis' | 'accounts' | 'hotAccounts'>,
  trail: AuditTrail,
  id: string,
  reason: string,
): Promise<void> {
  const change = { banned: true, banReason: reason };
  await trail.run(
    { action: 'account.ban', id, before: await describeBan(deps, id) },
    () => changeAccount(deps, id, change),
    () => ({ banned: true, ban_reason: reason }),
  );
}

export async function unbanAccount(
  deps: Pick<AdminDeps, 'redis' | 'accounts' | 'hotAccounts'>,
  trail: AuditTrail,
  id: string,
): Promise<void> {
  await trail.run(
    { action: 'account.unban', id, before: await describeBan(deps, id) },
    async () => {
      // The count that may have caused the ban must not ban the account again immediately.
      await resetUnknownCodes(deps.redis, id);
      await changeAccount(deps, id, { banned: false, banReason: null });
    },
    () => ({ banned: false, ban_reason: null }),
  );
}

async function describeBan({ accounts }: Pick<AdminDeps, 'accounts'>, id: string): Promise<object> {
  const stored = await accounts.findById(id);
  return { banned: stored?.banned ?? false, ban_reason: stored?.banReason ?? null };
}

/** Replaces the key of an account. The audit log has only the masks of both. @returns null if there is no such account */
export async function rotateKey(
  deps: Pick<AdminDeps, 'redis' | 'accounts' | 'hotAccounts' | 'apiKeys'>,
  trail: AuditTrail,
  id: string,
): Promise<string | null> {
  const readMask = async () => ({ key: (await deps.accounts.findById(id))?.keyMasked ?? null });
  const { apiKey } = await trail.run(
    { action: 'account.rotate-key', id, before: await readMask() },
    async () => {
      const apiKey = await replaceKey(deps, id);
      return { apiKey, after: await readMask() };
    },
    ({ after }) => after,
  );
  return apiKey;
}

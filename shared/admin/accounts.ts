import { randomUUID } from 'node:crypto';
import type { AccountChange, AccountCreation, AccountDocument } from '../accounts/account-store.ts';
import { changeAccount } from '../accounts/change-account.ts';
import type { HotAccount } from '../accounts/hot-account-store.ts';
import type { SettingsChange } from '../accounts/account-settings.ts';
import { presentSettings } from '../accounts/present-settings.ts';
import { exchangeKey, forgetOldSecret, undoExchange } from '../accounts/replace-key.ts';
import { hashSecret, maskApiKey } from '../accounts/credentials.ts';
import { resetUnknownCodes } from '../accounts/unknown-code-script.ts';
import { AppError } from '../contract/errors.ts';
import { cleanText } from '../contract/mask-secrets.ts';
import { maxBalanceNano, toRubNumber } from '../encoding/money.ts';
import type { AdminDeps } from './admin-deps.ts';
import type { AuditTrail } from './audit-trail.ts';
import { creditNewAccount, takeBackNewCredit } from './credits.ts';
import { deriveId, hashRequest, type OnceForEver } from './once-for-ever.ts';
import type { Page } from './page.ts';
import { toAuditFields } from './to-audit-fields.ts';

/** An account as shown to operators. What operators wrote is stored only in MongoDB. */
export function describeAccount(account: HotAccount, stored: AccountDocument | null) {
  return {
    id: account.id,
    user_type: account.userType,
    balance: toRubNumber(account.balanceNano),
    reserved: toRubNumber(account.reservedNano),
    total_balance_added: toRubNumber(account.totalAddedNano),
    free_requests: account.freeRequests,
    requests_per_minute: account.requestsPerMinute,
    max_queued_jobs: account.maxQueuedJobs,
    weight: account.weight,
    last_used_at: account.lastUsedAt?.toISOString() ?? null,
    banned: account.banned,
    ban_reason: account.banned ? (stored?.banReason ?? null) : null,
    created_at: account.createdAt.toISOString(),
    ...presentSettings(stored, account.restrictions),
  };
}
export type DescribedAccount = ReturnType<typeof describeAccount>;

export interface NewOperatorAccount extends SettingsChange {
  /** Makes the account be created once, for ever; null for another one with each call. */
  readonly once?: OnceForEver | null;
  readonly amountNano: bigint;
  readonly freeRequests: number;
  readonly requestsPerMinute: number;
  readonly userType: string;
}

export interface CreatedAccount {
  readonly account: DescribedAccount;
  /**
   * Returned only here. Null if an earlier call created the account, and its key has been replaced since or is stored as a
   * hash alone.
   */
  readonly apiKey: string | null;
  /** Whether an earlier call with the key created it. */
  readonly isReplay: boolean;
}

type CreateDeps = Pick<AdminDeps, 'accounts' | 'hotAccounts' | 'redis' | 'ledger'>;

/**
 * Creates an account with money and limits. With a key, the account's id is derived from it, and the account has what was
 * asked for from its first write on, so that a repeated call finishes what an earlier one began.
 * @param timedOut aborted if the account's key can no longer be delivered. Without an `Idempotency-Key`, with which a repeated
 * call gets it, the account is then given up.
 * @throws AppError `idempotency_conflict` if the key was used for another request
 */
export async function createAccount(
  deps: CreateDeps,
  trail: AuditTrail,
  account: NewOperatorAccount,
  timedOut?: AbortSignal,
): Promise<CreatedAccount> {
  if (account.amountNano > maxBalanceNano)
    throw new AppError('validation_failed', { message: 'A balance cannot exceed 9 000 000 roubles.' });
  const { once = null } = account;
  const id = once === null ? randomUUID() : deriveId('account', once.key);
  return await trail.run(
    { action: 'account.create', id },
    () => makeAccount(deps, trail.actor.token, id, account),
    ({ account: created, apiKey, isReplay }) =>
      isReplay ? { replayed: true, api_key_shown: apiKey !== null } : created,
    once === null
      ? { timedOut, undo: ({ apiKey }) => giveUp(deps, trail.actor.token, id, account, apiKey!) }
      : undefined,
  );
}

/** Makes a new account worthless whose key nobody has. It stays, because its ledger entries stay. */
async function giveUp(
  deps: CreateDeps,
  token: string,
  id: string,
  amounts: Pick<NewOperatorAccount, 'amountNano' | 'freeRequests'>,
  apiKey: string,
): Promise<void> {
  const banReason = 'Its creation took too long: the caller was told that it failed, and nobody has its key.';
  await changeAccount(deps, id, { banned: true, banReason });
  await takeBackNewCredit(deps, token, id, amounts);
  await deps.accounts.deleteSecret(hashSecret(apiKey));
}

async function makeAccount(
  deps: CreateDeps,
  token: string,
  id: string,
  { once = null, amountNano, freeRequests, ...settings }: NewOperatorAccount,
): Promise<CreatedAccount> {
  const { accounts, hotAccounts } = deps;
  const creation =
    once === null ? undefined : { amountNano, freeRequests, requestHash: hashRequest(once.request) };
  const earlier = creation === undefined ? null : await accounts.findById(id);
  const newKey = earlier === null ? await accounts.createWithId(id, { ...settings, creation }) : null;
  const keyHash =
    newKey === null ? checkRepetition(earlier ?? (await accounts.findById(id, true)), creation) : '';
  await hotAccounts.load(id);
  await creditNewAccount(deps, token, id, { amountNano, freeRequests });
  const account = describeAccount(await hotAccounts.get(id), await accounts.findById(id));
  // Another key than the first is not shown: an operator or the owner has replaced it since, and only they may have it.
  const apiKey = newKey ?? (await accounts.revealKey(id, { expectedKeyHash: keyHash }));
  return { account, apiKey, isReplay: newKey === null };
}

/** @returns the hash of the key that the account was created with. @throws AppError `idempotency_conflict` */
function checkRepetition(
  stored: AccountDocument | null,
  request: Omit<AccountCreation, 'keyHash'> | undefined,
): string {
  const creation = stored?.creation;
  if (
    creation === undefined ||
    creation.amountNano !== request?.amountNano ||
    creation.freeRequests !== request.freeRequests ||
    creation.requestHash !== request.requestHash
  )
    throw new AppError('idempotency_conflict', {
      message:
        'This Idempotency-Key was already used to create an account with other fields. Repeat the same request, or use a new key for each account.',
    });
  return creation.keyHash;
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

/** Describes the accounts of a page of documents. Loads none of them into Redis. */
export async function describePage(
  { hotAccounts }: Pick<AdminDeps, 'hotAccounts'>,
  page: Page<AccountDocument>,
): Promise<Page<DescribedAccount>> {
  const accounts = await hotAccounts.readAll(page.rows);
  return { ...page, rows: accounts.map((account, i) => describeAccount(account, page.rows[i]!)) };
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
    { action: 'account.update', id, before: toAuditFields(before) },
    () => changeAccount(deps, id, change),
    () => toAuditFields(change),
  );
}

/** Bans an account: refuses its requests, and ends those in progress. */
export async function banAccount(
  deps: Pick<AdminDeps, 'redis' | 'accounts' | 'hotAccounts'>,
  trail: AuditTrail,
  id: string,
  given: string,
): Promise<void> {
  const reason = cleanText(given);
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

/**
 * Replaces the key of an account. The audit log has only the masks of both.
 * @param timedOut aborted if the new key can no longer be delivered; the old one then works again
 * @returns null if there is no such account
 * @throws AppError `validation_failed` if somebody else replaces the key at the same time. Only one of the new keys works,
 * and only one caller gets it
 */
export async function rotateKey(
  deps: Pick<AdminDeps, 'redis' | 'accounts' | 'hotAccounts' | 'apiKeys'>,
  trail: AuditTrail,
  id: string,
  timedOut?: AbortSignal,
): Promise<string | null> {
  const stored = await deps.accounts.findById(id);
  if (stored === null) return null;
  const replaced = await trail.run(
    { action: 'account.rotate-key', id, before: { key: stored.keyMasked } },
    async () => {
      const made = await exchangeKey(deps, id, { expectedKeyHash: stored.keyHash }, timedOut);
      if (made === null) throw keyJustReplaced();
      return made;
    },
    ({ apiKey }) => ({ key: maskApiKey(apiKey) }),
    { timedOut, undo: (made) => undoExchange(deps, id, made) },
  );
  const forgetting = forgetOldSecret(deps, replaced);
  // A caller that may time out gets the key now: it could not be undone any more.
  if (timedOut === undefined) await forgetting;
  return replaced.apiKey;
}

const keyJustReplaced = (): AppError =>
  new AppError('validation_failed', {
    message:
      'Somebody else has just replaced the key of this account, and has the new one. Try again to replace that one, too.',
  });

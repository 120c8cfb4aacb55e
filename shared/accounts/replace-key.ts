import { publishInvalidation } from '../platform/redis/invalidation-channel.ts';
import type { ExpectedKey, ReplacedKey } from './account-store.ts';
import type { ApiKeyStore } from './api-key-store.ts';
import type { ChangeDeps } from './change-account.ts';

export interface ReplaceKeyDeps extends ChangeDeps {
  readonly apiKeys: ApiKeyStore;
}

/**
 * Replaces an account's key everywhere. The old key stops working immediately, but requests already admitted with it
 * continue. MongoDB is the source of truth for keys. If Redis fails after MongoDB was changed, the old key is restored.
 * @param expected the key that the account must still have; any key if empty
 * @param signal aborted if the new key can no longer be delivered; the old key is then restored
 * @returns the new key in plain text, or null if there is no such account or its key is not the expected one
 */
export async function replaceKey(
  deps: ReplaceKeyDeps,
  accountId: string,
  expected: ExpectedKey = {},
  signal?: AbortSignal,
): Promise<string | null> {
  const replaced = await exchangeKey(deps, accountId, expected, signal);
  if (replaced === null) return null;
  await forgetOldSecret(deps, replaced);
  return replaced.apiKey;
}

/** Like `replaceKey`, but can be undone until `forgetOldSecret`. */
export async function exchangeKey(
  { redis, accounts, hotAccounts, apiKeys }: ReplaceKeyDeps,
  accountId: string,
  expected: ExpectedKey,
  signal: AbortSignal | undefined,
): Promise<ReplacedKey | null> {
  signal?.throwIfAborted();
  const replaced = await accounts.replaceKey(accountId, expected);
  if (replaced === null) return null;
  try {
    signal?.throwIfAborted();
    await hotAccounts.setKey(accountId, replaced.keyHash);
    await apiKeys.forget(replaced.old.keyHash);
    await publishInvalidation(redis, { kind: 'account', accountId });
  } catch (error) {
    await accounts.restoreKey(accountId, replaced);
    throw error;
  }
  return replaced;
}

/** Restores the old key everywhere, unless the key has been replaced again. */
export async function undoExchange(
  { redis, accounts, hotAccounts, apiKeys }: ReplaceKeyDeps,
  accountId: string,
  replaced: ReplacedKey,
): Promise<void> {
  await accounts.restoreKey(accountId, replaced);
  await hotAccounts.adopt(accountId);
  await apiKeys.forget(replaced.keyHash);
  await publishInvalidation(redis, { kind: 'account', accountId });
}

/** Deletes the secret of the old key. Never fails. */
export async function forgetOldSecret(
  { accounts }: Pick<ReplaceKeyDeps, 'accounts'>,
  { old }: ReplacedKey,
): Promise<void> {
  await accounts.deleteSecret(old.keyHash).catch(() => {
    // The key has been replaced, so the caller must get the new one. A failure only leaves behind the secret of the old
    // key, which no longer works.
  });
}

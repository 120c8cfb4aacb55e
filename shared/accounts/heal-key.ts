import type { HotAccountStore } from '../billing/hot-account-store.ts';
import type { ApiKeyStore, KeyHolder } from './api-key-store.ts';
import { isSameHash } from './credentials.ts';

export interface HealKeyDependencies {
  readonly hotAccounts: HotAccountStore;
  readonly apiKeys: ApiKeyStore;
}

/**
 * Settles which key an account has, where the one that was presented is not the one that Redis names: a crash in the
 * middle of a replacement leaves Redis and MongoDB apart. MongoDB is the truth, and Redis is told.
 * @returns whether the presented key is the account's own; then what was refused for it may be tried again
 * @throws AppError `service_unavailable`
 */
export async function healKey(
  { hotAccounts, apiKeys }: HealKeyDependencies,
  { accountId, keyHash }: KeyHolder,
): Promise<boolean> {
  const account = await hotAccounts.adoptShared(accountId);
  // What the caches know of it may be from before the replacement.
  await apiKeys.forget(keyHash);
  return account !== null && isSameHash(account.keyHash, keyHash);
}

import type { HotAccountStore } from '../billing/hot-account-store.ts';
import type { ApiKeyStore, KeyHolder } from '../accounts/api-key-store.ts';
import { isSameHash } from '../accounts/credentials.ts';

export interface HealKeyDeps {
  readonly hotAccounts: HotAccountStore;
  readonly apiKeys: ApiKeyStore;
}

/**
 * Checks which key an account has if the presented key differs from the one in Redis. A crash in the middle of a
 * replacement leaves Redis and MongoDB inconsistent. MongoDB is the source of truth, and Redis is updated from it.
 * @returns whether the presented key is the account's current key; if so, the rejected request may be retried
 * @throws AppError `service_unavailable`
 */
export async function healKey(
  { hotAccounts, apiKeys }: HealKeyDeps,
  { accountId, keyHash }: KeyHolder,
): Promise<boolean> {
  const account = await hotAccounts.adoptShared(accountId);
  // The cached entries may date from before the replacement.
  await apiKeys.forget(keyHash);
  return account !== null && isSameHash(account.keyHash, keyHash);
}

import type { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import type { ApiKeyStore, KeyHolder } from '../../shared/accounts/api-key-store.ts';
import { isSameHash } from '../../shared/accounts/credentials.ts';

export interface HealKeyDeps {
  readonly hotAccounts: HotAccountStore;
  readonly apiKeys: ApiKeyStore;
}

/**
 * Called if the presented key differs from the account's key in Redis. Reads the account's key from MongoDB, which is
 * the source of truth, and updates Redis from it: the two differ after a crash in the middle of a replacement.
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

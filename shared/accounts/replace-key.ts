import { publishInvalidation } from '../redis/invalidation-channel.ts';
import type { ExpectedKey } from './account-store.ts';
import type { ApiKeyStore } from './api-key-store.ts';
import type { ChangeDependencies } from './change-account.ts';

export interface ReplaceKeyDependencies extends ChangeDependencies {
  readonly apiKeys: ApiKeyStore;
}

/**
 * Gives an account another key, everywhere: the old one opens nothing from then on, while requests that it opened
 * before go on. MongoDB is the truth for keys; where Redis fails after it, the old key is put back.
 * @param expected the key that is to be replaced
 * @param late aborts when nobody can be given the new key any more: the old one is put back then
 * @returns the new key in clear, or null where there is no such account, or its key is not the expected one
 */
export async function replaceKey(
  { redis, accounts, hotAccounts, apiKeys }: ReplaceKeyDependencies,
  accountId: string,
  expected: ExpectedKey = {},
  late?: AbortSignal,
): Promise<string | null> {
  late?.throwIfAborted();
  const replaced = await accounts.replaceKey(accountId, expected);
  if (replaced === null) return null;
  try {
    late?.throwIfAborted();
    await hotAccounts.update(accountId, { keyHash: replaced.keyHash });
    await apiKeys.forget(replaced.old.keyHash);
    await publishInvalidation(redis, { kind: 'account', accountId });
  } catch (error) {
    await accounts.restoreKey(accountId, replaced);
    throw error;
  }
  await accounts.forgetSecret(replaced.old.keyHash).catch(() => {
    // The key is replaced and its caller must be given the new one. What stays behind is the secret of a key that
    // opens nothing.
  });
  return replaced.apiKey;
}

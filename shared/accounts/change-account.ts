import type { HotAccountStore } from '../billing/hot-account-store.ts';
import { publishInvalidation } from '../redis/invalidation-channel.ts';
import type { RedisClient } from '../redis/redis-client.ts';
import type { AccountChange, AccountStore } from './account-store.ts';

export interface ChangeDependencies {
  readonly redis: RedisClient;
  readonly accounts: AccountStore;
  readonly hotAccounts: HotAccountStore;
}

/**
 * Changes an account everywhere: at rest first, so that whatever loads the account from there loads the change, then
 * in Redis, where it holds from the next admission on.
 */
export async function changeAccount(
  { redis, accounts, hotAccounts }: ChangeDependencies,
  accountId: string,
  change: AccountChange,
): Promise<void> {
  await accounts.update(accountId, change);
  await hotAccounts.update(accountId, change);
  await publishInvalidation(redis, { kind: 'account', accountId });
}

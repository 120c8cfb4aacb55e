import type { HotAccountStore } from './hot-account-store.ts';
import { publishInvalidation } from '../platform/redis/invalidation-channel.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import type { AccountChange, AccountStore } from './account-store.ts';

export interface ChangeDeps {
  readonly redis: RedisClient;
  readonly accounts: AccountStore;
  readonly hotAccounts: HotAccountStore;
}

/**
 * Changes an account everywhere: first in MongoDB, so that any later load includes the change, then in Redis, where it
 * applies to the next admission. Redis gets what MongoDB has, which may be a later change of somebody else.
 */
export async function changeAccount(
  { redis, accounts, hotAccounts }: ChangeDeps,
  accountId: string,
  change: AccountChange,
): Promise<void> {
  await accounts.update(accountId, change);
  await hotAccounts.adopt(accountId);
  await publishInvalidation(redis, { kind: 'account', accountId });
}

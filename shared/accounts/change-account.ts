import type { HotAccountStore } from './hot-account-store.ts';
import { publishInvalidation } from '../platform/redis/invalidation-channel.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { changesSettings } from './account-settings.ts';
import type { AccountChange, AccountStore } from './account-store.ts';

export interface ChangeDeps {
  readonly redis: RedisClient;
  readonly accounts: AccountStore;
  readonly hotAccounts: HotAccountStore;
}

/**
 * Changes an account everywhere: first in MongoDB, so that any later load includes the change, then in Redis, where it
 * applies to the next admission.
 */
export async function changeAccount(
  { redis, accounts, hotAccounts }: ChangeDeps,
  accountId: string,
  change: AccountChange,
): Promise<void> {
  await accounts.update(accountId, change);
  if (changesSettings(change)) await hotAccounts.adopt(accountId);
  else await hotAccounts.update(accountId, change);
  await publishInvalidation(redis, { kind: 'account', accountId });
}

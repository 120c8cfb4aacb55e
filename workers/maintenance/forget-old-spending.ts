// decision 0096
import type { AccountStore } from '../../shared/accounts/account-store.ts';
import { nameDay, toDay } from '../../shared/accounts/budget-periods.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';

/** More than a month, which is the longest period of a budget. */
const keptDays = 40;
/** How far back to begin if Redis does not know what was forgotten before. */
const maxForgottenDays = 400;
/** Each takes a pass over all accounts. */
const daysPerUpdate = 50;

export interface ForgetSpendingDeps {
  readonly redis: RedisClient;
  readonly accounts: AccountStore;
}

/**
 * Forgets what accounts spent on days that no budget counts any more: once for each day, also for days on which no worker
 * ran.
 */
export async function forgetOldSpending({ redis, accounts }: ForgetSpendingDeps): Promise<void> {
  const newest = toDay(Date.now()) - keptDays;
  const forgotten = await callRedis(() => redis.get(redisKeys.spendingForgotten));
  const oldest = Math.max(newest - maxForgottenDays + 1, Number(forgotten ?? 0) + 1);
  for (let first = oldest; first <= newest; first += daysPerUpdate) {
    const count = Math.min(daysPerUpdate, newest - first + 1);
    await accounts.forgetSpending(Array.from({ length: count }, (_, i) => nameDay(first + i)));
  }
  if (oldest <= newest) await callRedis(() => redis.set(redisKeys.spendingForgotten, newest));
}

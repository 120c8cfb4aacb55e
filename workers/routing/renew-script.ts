import { LuaScript } from '../../shared/platform/redis/lua-script.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';

const script = new LuaScript(
  new URL('./renew-leases.lua', import.meta.url),
  ['calls', 'holders', 'leaseMs', 'holder'],
  { itemNames: ['lease'] },
);

/**
 * Renews leases in one of the sorted sets of slots, and restores those that Redis has lost. Sends the script as full
 * text, because a retry after NOSCRIPT could arrive after the end of a call and restore the slot that it just released.
 * @returns false if the holder is not alive
 */
export async function runRenewal(
  redis: RedisClient,
  key: string,
  holder: string,
  leases: readonly string[],
  leaseMs: number,
): Promise<boolean> {
  const values = { calls: key, holders: redisKeys.slotHolders, leaseMs, holder };
  const items = leases.map((lease) => ({ lease }));
  return (await script.runInOrder(redis, values, items)) === 1;
}

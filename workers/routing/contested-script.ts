import { LuaScript } from '../../shared/platform/redis/lua-script.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import type { CallSlot } from './acquire-script.ts';
import { slotsOf } from '../../shared/routing/candidate-keys.ts';

const contestedScript = new LuaScript(new URL('./is-contested.lua', import.meta.url), ['accountId'], {
  itemNames: ['waiting'],
});

/** Whether another account waits for slots that this call holds. One round trip. */
export async function isContested(redis: RedisClient, { candidate, accountId }: CallSlot): Promise<boolean> {
  const slots = slotsOf(candidate);
  const limited = slots.keys.filter((_, i) => slots.limits[i]! > 0);
  const sets = limited.map((key) => ({ waiting: redisKeys.waitingFor(key) }));
  return (await contestedScript.run(redis, { accountId }, sets)) === 1;
}

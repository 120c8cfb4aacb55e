import { LuaScript } from '../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';

const windowSeconds = 60 * 60;

const script = new LuaScript(new URL('./count-unknown-code.lua', import.meta.url), [
  'count',
  'windowSeconds',
]);

/** @returns how many unknown codes the account has tried within the hour, including this one */
export async function countUnknownCode(redis: RedisClient, accountId: string): Promise<number> {
  const count = redisKeys.unknownCodes(accountId);
  return (await callRedis(() => script.run(redis, { count, windowSeconds }))) as number;
}

/** Resets the count when an account is unbanned. */
export async function resetUnknownCodes(redis: RedisClient, accountId: string): Promise<void> {
  await callRedis(() => redis.del(redisKeys.unknownCodes(accountId)));
}

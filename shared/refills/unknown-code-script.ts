import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';

const windowSeconds = 60 * 60;

/** Counts unknown codes within an hour that starts with the first one. */
const script = new RedisScript(`
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return count
`);

/** @returns how many unknown codes the account has tried within the hour, including this one */
export async function countUnknownCode(redis: RedisClient, accountId: string): Promise<number> {
  const count = await callRedis(() =>
    script.run(redis, [redisKeys.unknownCodes(accountId)], [windowSeconds]),
  );
  return Number(count);
}

/** Resets the count when an account is unbanned. */
export async function resetUnknownCodes(redis: RedisClient, accountId: string): Promise<void> {
  await callRedis(() => redis.del(redisKeys.unknownCodes(accountId)));
}

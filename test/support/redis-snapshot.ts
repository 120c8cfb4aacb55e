import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { findKeys, forgetAll } from './all-of-redis.ts';

/**
 * Remembers all that Redis holds now.
 * @returns makes Redis hold that again, as one does that lost what it had not written down
 */
export async function takeRedisSnapshot(redis: RedisClient): Promise<() => Promise<void>> {
  const keys = await findKeys(redis, '*');
  const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
  return async () => {
    await forgetAll(redis);
    for (const [i, key] of keys.entries()) await redis.restore(key, 0, dumps[i]!);
  };
}

/** All keys and values that Redis holds, as one text to search. */
export async function readAllOfRedis(redis: RedisClient): Promise<string> {
  const keys = await findKeys(redis, '*');
  const values = await Promise.all(keys.map((key) => readValue(redis, key)));
  return JSON.stringify([keys, values]);
}

async function readValue(redis: RedisClient, key: string): Promise<unknown> {
  const type = await redis.type(key);
  if (type === 'string') return await redis.get(key);
  if (type === 'hash') return await redis.hgetall(key);
  if (type === 'list') return await redis.lrange(key, 0, -1);
  if (type === 'set') return await redis.smembers(key);
  if (type === 'zset') return await redis.zrange(key, '0', '-1');
  if (type === 'stream') return await redis.xrange(key, '-', '+');
  // It went meanwhile.
  return null;
}

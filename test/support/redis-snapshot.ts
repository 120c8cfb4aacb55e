import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { findKeys, flushAll } from './all-of-redis.ts';

/**
 * Saves the current content of Redis.
 * @returns a function that restores it, as if Redis had lost its unpersisted writes
 */
export async function takeRedisSnapshot(redis: RedisClient): Promise<() => Promise<void>> {
  const keys = await findKeys(redis, '*');
  const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
  return async () => {
    await flushAll(redis);
    for (const [i, key] of keys.entries()) await redis.restore(key, 0, dumps[i]!);
  };
}

/** All keys and values in Redis, as one text to search. */
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
  // Deleted in the meantime.
  return null;
}

import type { RedisClient } from '../../shared/redis/redis-client.ts';

/**
 * Remembers all that Redis holds now.
 * @returns makes Redis hold that again, as one does that lost what it had not written down
 */
export async function takeRedisSnapshot(redis: RedisClient): Promise<() => Promise<void>> {
  const keys = await redis.keys('*');
  const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
  return async () => {
    await redis.flushall();
    for (const [i, key] of keys.entries()) await redis.restore(key, 0, dumps[i]!);
  };
}

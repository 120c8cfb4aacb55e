import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';

/** The time in milliseconds by Redis's clock, which its scripts use. */
export async function readRedisMs(redis: RedisClient): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** Makes the attempts in a window older by this much; a negative value simulates that Redis's clock steps back. */
export async function ageWindow(redis: RedisClient, key: string, byMs: number): Promise<void> {
  for (const attempt of await redis.zrange(key, '0', '-1')) await redis.zincrby(key, -byMs, attempt);
}

export async function readOldestMs(redis: RedisClient, key: string): Promise<number> {
  return Number((await redis.zrange(key, '0', '0', 'WITHSCORES'))[1]);
}

import { parseReservation } from '../money/reservation-store.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../platform/redis/redis-keys.ts';

/** Reservations of a shard that are read. Under more load, the number is estimated from them. */
const maxRead = 5_000;

/** Counts the requests of an account that are in progress, without durable jobs and lines of batches. */
export async function countRequests(
  redis: RedisClient,
  accountId: string,
): Promise<{ readonly count: number; readonly isExact: boolean }> {
  const key = redisKeys.reservations(shardOf(accountId));
  return await callRedis(async () => {
    const all = await redis.hlen(key);
    const values = all <= maxRead ? await redis.hvals(key) : await readSome(redis, key);
    const own = values.filter((value) => parseReservation('', value).accountId === accountId).length;
    if (all <= maxRead) return { count: own, isExact: true };
    return { count: Math.round((own * all) / values.length), isExact: false };
  });
}

async function readSome(redis: RedisClient, key: string): Promise<string[]> {
  const values: string[] = [];
  let cursor = '0';
  do {
    const [next, pairs] = await redis.hscan(key, cursor, 'COUNT', 1_000);
    values.push(...pairs.filter((_, i) => i % 2 === 1));
    cursor = next;
  } while (cursor !== '0' && values.length < maxRead);
  return values;
}

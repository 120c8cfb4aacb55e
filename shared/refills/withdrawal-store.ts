import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';

const withdrawn = 'withdrawn';
const markerSeconds = 7 * 24 * 60 * 60;

/**
 * Withdraws a refill id, so that it can never be credited. Uses the same marker as crediting, so exactly one of the two
 * happens, however late and in whichever process.
 * @returns whether it is withdrawn; false if it was already credited
 */
export async function withdrawRefill(
  redis: RedisClient,
  accountId: string,
  refillId: string,
): Promise<boolean> {
  const marker = redisKeys.refill(accountId, refillId);
  const set = await callRedis(() => redis.set(marker, withdrawn, 'EX', markerSeconds, 'NX'));
  return set === 'OK' || (await isRefillWithdrawn(redis, accountId, refillId));
}

export async function isRefillWithdrawn(
  redis: RedisClient,
  accountId: string,
  refillId: string,
): Promise<boolean> {
  return (await callRedis(() => redis.get(redisKeys.refill(accountId, refillId)))) === withdrawn;
}

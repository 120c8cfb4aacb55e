import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';

/** The value of a marker whose refill is voided. */
const voided = 'voided';
const markerSeconds = 7 * 24 * 60 * 60;

/**
 * Voids a refill id, so that it cannot be credited. Crediting sets the same marker, so only one of the two happens. The
 * marker lasts a week, longer than any credit can be delayed.
 * @returns whether it is void; false if it was already credited
 */
export async function voidRefill(redis: RedisClient, accountId: string, refillId: string): Promise<boolean> {
  const marker = redisKeys.refill(accountId, refillId);
  const set = await callRedis(() => redis.set(marker, voided, 'EX', markerSeconds, 'NX'));
  return set === 'OK' || (await isRefillVoided(redis, accountId, refillId));
}

export async function isRefillVoided(
  redis: RedisClient,
  accountId: string,
  refillId: string,
): Promise<boolean> {
  return (await callRedis(() => redis.get(redisKeys.refill(accountId, refillId)))) === voided;
}

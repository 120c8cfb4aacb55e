import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';

/** A request, as its row in the log has it. */
interface KeyedRequest {
  readonly _id: string;
  readonly accountId: string;
  readonly claimHash?: string | null;
}

/**
 * Reads how often a request was sent again with its Idempotency-Key and got its response.
 * @returns null if it has no key, or the key is forgotten or belongs to another request
 */
export async function readReplays(
  redis: RedisClient,
  { _id, accountId, claimHash = null }: KeyedRequest,
): Promise<number | null> {
  if (claimHash === null) return null;
  const claim = redisKeys.claim(accountId, claimHash);
  const [id, replays] = await callRedis(() => redis.hmget(claim, 'id', 'replays'));
  return id === _id ? Number(replays ?? 0) : null;
}

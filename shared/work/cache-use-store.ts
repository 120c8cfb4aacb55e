import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { countCachedVectors } from './store-vectors-script.ts';

const lifetimeSeconds = 30 * 86_400;

/** Use of a model's cache, from which operators decide how large the cache should be. */
export interface CacheUse {
  /** Inputs found in the cache, and inputs not found. */
  readonly hits: number;
  readonly misses: number;
  /** The current content of the cache. */
  readonly entries: number;
  readonly bytes: number;
}

/** Cache use by model, across all workers. */
export class CacheUseStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  async count(modelId: string, hits: number, misses: number): Promise<void> {
    const key = redisKeys.cachedVectorsUse(modelId);
    await Promise.all([
      hits === 0 ? null : this.#redis.hincrby(key, 'hits', hits),
      misses === 0 ? null : this.#redis.hincrby(key, 'misses', misses),
      this.#redis.expire(key, lifetimeSeconds),
    ]);
  }

  /** @throws AppError `service_unavailable` */
  async read(modelId: string): Promise<CacheUse> {
    return await callRedis(async () => {
      const [[hits, misses], { entries, bytes }] = await Promise.all([
        this.#redis.hmget(redisKeys.cachedVectorsUse(modelId), 'hits', 'misses'),
        countCachedVectors(this.#redis, modelId),
      ]);
      return { hits: Number(hits ?? 0), misses: Number(misses ?? 0), entries, bytes };
    });
  }
}

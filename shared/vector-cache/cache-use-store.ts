import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { countKeptVectors } from './keep-vectors-script.ts';

const keptSeconds = 30 * 86_400;

/** What an operator goes by when they bound a model's cache. */
export interface CacheUse {
  /** Inputs that were found, and inputs that were not. */
  readonly hits: number;
  readonly misses: number;
  /** What is kept now. */
  readonly entries: number;
  readonly bytes: number;
}

/** How the caches of vectors are used, model by model, over all workers. */
export class CacheUseStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  async count(modelId: string, hits: number, misses: number): Promise<void> {
    const key = redisKeys.keptVectorsUse(modelId);
    await Promise.all([
      hits === 0 ? null : this.#redis.hincrby(key, 'hits', hits),
      misses === 0 ? null : this.#redis.hincrby(key, 'misses', misses),
      this.#redis.expire(key, keptSeconds),
    ]);
  }

  /** @throws AppError `service_unavailable` */
  async read(modelId: string): Promise<CacheUse> {
    return await callRedis(async () => {
      const [[hits, misses], { entries, bytes }] = await Promise.all([
        this.#redis.hmget(redisKeys.keptVectorsUse(modelId), 'hits', 'misses'),
        countKeptVectors(this.#redis, modelId),
      ]);
      return { hits: Number(hits ?? 0), misses: Number(misses ?? 0), entries, bytes };
    });
  }
}

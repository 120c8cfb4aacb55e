import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';

/** Longer than any deadline of a request, so that a payload never goes before its reader had its chance. */
const lifetimeSeconds = 30 * 60;

/** Binary values that are too large for a queue's item or a frame. */
export class PayloadStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  async put(id: string, bytes: Buffer): Promise<void> {
    await callRedis(() => this.#redis.set(redisKeys.payload(id), bytes, 'EX', lifetimeSeconds));
  }

  /** Null where it is gone. It stays: a job that runs again needs its input again. */
  async get(id: string): Promise<Buffer | null> {
    return await callRedis(() => this.#redis.getBuffer(redisKeys.payload(id)));
  }

  /** Reads for the last time. */
  async take(id: string): Promise<Buffer | null> {
    return await callRedis(() => this.#redis.getdelBuffer(redisKeys.payload(id)));
  }

  async drop(id: string): Promise<void> {
    await callRedis(() => this.#redis.unlink(redisKeys.payload(id)));
  }
}

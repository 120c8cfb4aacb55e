import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';

/** Longer than any deadline: until then a queued job may still be taken. */
const lifetimeMs = 30 * 60_000;

/**
 * Requests whose callers left while their jobs were queued. A job of many callers cannot be taken off its queue for
 * one of them, so the worker that takes it leaves that one out, before any money is spent.
 */
export class CancelledStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  async add(requestId: string): Promise<void> {
    const nowMs = Date.now();
    await callRedis(() =>
      Promise.all([
        this.#redis.zadd(redisKeys.cancelled, nowMs + lifetimeMs, requestId),
        this.#redis.zremrangebyscore(redisKeys.cancelled, '-inf', nowMs),
        this.#redis.pexpire(redisKeys.cancelled, lifetimeMs),
      ]),
    );
  }

  /** Whether each of the requests was cancelled, in their order. One command, however many they are. */
  async check(requestIds: readonly string[]): Promise<boolean[]> {
    const scores = await callRedis(() => this.#redis.zmscore(redisKeys.cancelled, ...requestIds));
    return scores.map((score) => score !== null);
  }
}

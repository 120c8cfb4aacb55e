import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';

/** Longer than any deadline: until then a queued job may still be taken. */
const lifetimeSeconds = 30 * 60;

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
    await callRedis(() => this.#redis.set(redisKeys.cancelled(requestId), '1', 'EX', lifetimeSeconds));
  }

  /** Whether each of the requests was cancelled, in their order. */
  async check(requestIds: readonly string[]): Promise<boolean[]> {
    const answers = await callRedis(() =>
      Promise.all(requestIds.map((id) => this.#redis.exists(redisKeys.cancelled(id)))),
    );
    return answers.map((answer) => answer === 1);
  }
}

import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys } from '../../platform/redis/redis-keys.ts';

/** How long after its deadline a worker may still take a queued job. */
const slackMs = 30 * 60_000;
/** How long an entry is stored. Longer than any deadline plus that slack. */
const lifetimeMs = 25 * 60 * 60_000;

/**
 * Requests whose callers disconnected while their jobs were queued. A job that serves many callers cannot be removed
 * from its queue for one of them, so the worker that takes the job skips that request before any money is spent.
 */
export class CancelledStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** @param deadlineAtMs the request's deadline, until which a worker may take it */
  async add(requestId: string, deadlineAtMs: number): Promise<void> {
    const nowMs = Date.now();
    await callRedis(() =>
      Promise.all([
        this.#redis.zadd(redisKeys.cancelled, Math.max(nowMs, deadlineAtMs) + slackMs, requestId),
        this.#redis.zremrangebyscore(redisKeys.cancelled, '-inf', nowMs),
        this.#redis.pexpire(redisKeys.cancelled, lifetimeMs),
      ]),
    );
  }

  /** Returns whether each request was cancelled, in the given order. Always a single command. */
  async check(requestIds: readonly string[]): Promise<boolean[]> {
    const scores = await callRedis(() => this.#redis.zmscore(redisKeys.cancelled, ...requestIds));
    return scores.map((score) => score !== null);
  }
}

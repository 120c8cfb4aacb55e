import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';

/** Beyond its deadline, so long may a queued job still be taken. */
const slackMs = 30 * 60_000;
/** Longer than any deadline, with that. */
const lifetimeMs = 25 * 60 * 60_000;

/**
 * Requests whose callers left while their jobs were queued. A job of many callers cannot be taken off its queue for
 * one of them, so the worker that takes it leaves that one out, before any money is spent.
 */
export class CancelledStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** @param deadlineAtMs of the request: until then a worker may take it */
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

  /** Whether each of the requests was cancelled, in their order. One command, however many they are. */
  async check(requestIds: readonly string[]): Promise<boolean[]> {
    const scores = await callRedis(() => this.#redis.zmscore(redisKeys.cancelled, ...requestIds));
    return scores.map((score) => score !== null);
  }
}

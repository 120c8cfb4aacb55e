import type { Job as BullJob } from 'bullmq';
import { callRedis, RedisScript, type RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import type { WebhookDelivery } from '../../shared/webhooks/webhook-delivery.ts';

/** Equal to the time for which deliveries count as undelivered. */
const lifetimeSeconds = 48 * 60 * 60;

const pausePerWaitingMs = 1_000;

/**
 * Returns the delay after which a waiting delivery is retried if nothing wakes it: a worker may die, or Redis fail,
 * between the end of an attempt and the wake. The delay grows with the number of waiting deliveries, so that at most
 * one per account is retried each second.
 */
export function computePauseMs(waiting: number, minMs: number): number {
  return Math.max(minMs, waiting * pausePerWaitingMs);
}

const joinScript = new RedisScript(`
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
`);

/**
 * Makes a delayed delivery due.
 * @returns false if it is no longer delayed, or is gone
 */
export type WakeDelivery = (deliveryId: string) => Promise<boolean>;

/**
 * The waiting deliveries of each account that is at its limit, oldest first. The end of each attempt wakes the next
 * one, so the load on Redis per waiting delivery does not grow with its wait.
 */
export class WaitingDeliveries {
  readonly #redis: RedisClient;
  readonly #wake: WakeDelivery;

  constructor(redis: RedisClient, wake: WakeDelivery) {
    this.#redis = redis;
    this.#wake = wake;
  }

  /** Returns the delay for the next delivery that joins. */
  async readPauseMs(accountId: string, minMs: number): Promise<number> {
    const key = redisKeys.waitingWebhooks(accountId);
    return computePauseMs((await callRedis(() => this.#redis.zcard(key))) + 1, minMs);
  }

  /** Call this after the delivery was delayed. Otherwise a wake could find it still running and be lost. */
  async join({ id, data, timestamp }: BullJob<WebhookDelivery>): Promise<void> {
    const key = redisKeys.waitingWebhooks(data.accountId);
    await callRedis(() => joinScript.run(this.#redis, [key], [timestamp, id!, lifetimeSeconds]));
  }

  /**
   * Removes the delivery when its attempt starts. Otherwise a wake would cut short the pause before its next attempt.
   */
  async remove({ id, data }: BullJob<WebhookDelivery>): Promise<void> {
    await callRedis(() => this.#redis.zrem(redisKeys.waitingWebhooks(data.accountId), id!));
  }

  async wakeNext(accountId: string): Promise<void> {
    const key = redisKeys.waitingWebhooks(accountId);
    for (;;) {
      const [deliveryId] = await callRedis(() => this.#redis.zpopmin(key));
      if (deliveryId === undefined || (await this.#wake(deliveryId))) return;
    }
  }
}

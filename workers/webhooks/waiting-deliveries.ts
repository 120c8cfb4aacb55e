import type { Job as BullJob } from 'bullmq';
import { callRedis, RedisScript, type RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import type { WebhookDelivery } from '../../shared/webhooks/webhook-delivery.ts';

/** As long as deliveries count as undelivered. */
const lifetimeSeconds = 48 * 60 * 60;

const pausePerWaitingMs = 1_000;

/**
 * After how long a delivery comes back by itself: its worker may die, or Redis fail, between the end of an attempt and the
 * wake. It grows with how many wait, so that at most one of an account does so a second.
 */
export function computePauseMs(waiting: number, leastMs: number): number {
  return Math.max(leastMs, waiting * pausePerWaitingMs);
}

const joinScript = new RedisScript(`
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
`);

/** Puts a delivery back among those that are due. @returns false if it is not delayed any more, or gone */
export type WakeDelivery = (deliveryId: string) => Promise<boolean>;

/**
 * The deliveries of each account that found it at its limit, the oldest first. Each end of an attempt wakes the next one, so
 * that what a waiting delivery costs Redis does not grow with how long it waits.
 */
export class WaitingDeliveries {
  readonly #redis: RedisClient;
  readonly #wake: WakeDelivery;

  constructor(redis: RedisClient, wake: WakeDelivery) {
    this.#redis = redis;
    this.#wake = wake;
  }

  /** How long the next delivery that joins is to be delayed. */
  async readPauseMs(accountId: string, leastMs: number): Promise<number> {
    const key = redisKeys.waitingWebhooks(accountId);
    return computePauseMs((await callRedis(() => this.#redis.zcard(key))) + 1, leastMs);
  }

  /** Call when the delivery has been delayed: earlier, whoever wakes it would find it running, and forget it. */
  async join({ id, data, timestamp }: BullJob<WebhookDelivery>): Promise<void> {
    const key = redisKeys.waitingWebhooks(data.accountId);
    await callRedis(() => joinScript.run(this.#redis, [key], [timestamp, id!, lifetimeSeconds]));
  }

  /** Its attempt begins: a wake in the pause before the next one would cut that short. */
  async leave({ id, data }: BullJob<WebhookDelivery>): Promise<void> {
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

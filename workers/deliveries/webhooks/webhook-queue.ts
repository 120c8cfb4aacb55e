import type { Queue } from 'bullmq';
import { openBullQueue } from '../../../shared/work/queue/open-bull-queue.ts';
import { LuaScript } from '../../../shared/platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import {
  deliveryIdOf,
  webhookQueueName,
  type WebhookDelivery,
} from '../../../shared/work/webhook-delivery.ts';

/** Maximum attempts per delivery, including the first. The worker determines the pauses between them. */
export const webhookAttempts = 7;

/** Per account; about 10 MB of Redis. A receiver that is down must not fill Redis. */
const maxUndelivered = 10_000;

/**
 * How long an undelivered webhook counts against the account's limit, in case a crash prevents its removal. Longer than
 * all attempts together.
 */
const undeliveredLifetimeSeconds = 48 * 60 * 60;

/** How long BullMQ keeps delivered webhooks, and how many of them. While one is kept, adding it again has no effect. */
const deliveredRetention = { count: 10_000, age: 24 * 60 * 60 };
/** BullMQ keeps failed deliveries for operators to inspect, up to a number and an age in seconds. */
const failureRetention = { count: 1_000, age: 7 * 24 * 60 * 60 };

const addUndeliveredScript = new LuaScript(new URL('./add-undelivered.lua', import.meta.url), [
  'undelivered',
  'id',
  'maxUndelivered',
  'lifetime',
]);

/**
 * Webhooks waiting for delivery. The queue is separate, so webhooks never wait behind jobs, nor jobs behind webhooks.
 */
export class WebhookQueue {
  readonly #redis: RedisClient;
  readonly #queue: Queue<WebhookDelivery>;
  readonly #maxUndelivered: number;

  /** @param maxUndeliveredPerAccount for tests */
  constructor(redis: RedisClient, maxUndeliveredPerAccount = maxUndelivered) {
    this.#redis = redis;
    this.#maxUndelivered = maxUndeliveredPerAccount;
    this.#queue = openBullQueue(webhookQueueName, redis, {
      attempts: webhookAttempts,
      backoff: { type: 'custom' },
      removeOnComplete: deliveredRetention,
      removeOnFail: failureRetention,
      // The failure reason is enough; a stack trace would be stored for every attempt.
      stackTraceLimit: 0,
    });
  }

  /**
   * Queues a webhook. Idempotent: the same event of the same job is delivered once.
   * @returns false if the account already has too many undelivered webhooks; nothing is added
   * @throws AppError `service_unavailable` while Redis is unavailable
   */
  async add(delivery: WebhookDelivery): Promise<boolean> {
    const jobId = deliveryIdOf(delivery);
    // A delivered webhook must not count against the account's limit again.
    if ((await callRedis(async () => await this.#queue.getJob(jobId))) !== undefined) return true;
    const added = await callRedis(() =>
      addUndeliveredScript.run(this.#redis, {
        undelivered: redisKeys.undeliveredWebhooks(delivery.accountId),
        id: jobId,
        maxUndelivered: this.#maxUndelivered,
        lifetime: undeliveredLifetimeSeconds,
      }),
    );
    if (added !== 1) return false;
    await callRedis(async () => await this.#queue.add(delivery.event as never, delivery as never, { jobId }));
    return true;
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }
}

/**
 * Call this when a delivery has succeeded or failed for good, so that it no longer counts against the account's limit.
 */
export async function removeUndelivered(redis: RedisClient, delivery: WebhookDelivery): Promise<void> {
  const key = redisKeys.undeliveredWebhooks(delivery.accountId);
  await callRedis(() => redis.zrem(key, deliveryIdOf(delivery)));
}

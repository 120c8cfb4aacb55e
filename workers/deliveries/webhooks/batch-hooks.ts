import { hasBatchEnded } from '../../../shared/work/batches/batch-record.ts';
import { BatchStore } from '../../../shared/work/batches/batch-store.ts';
import type { DueBatchHook } from '../../batches/keep-batch-scripts.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import {
  deliveryIdOf,
  type BatchEvent,
  type BatchPayload,
  type WebhookDelivery,
  type WebhookReporter,
  type WebhookState,
} from '../../../shared/work/webhook-delivery.ts';
import { tooManyUndelivered } from './job-hooks.ts';
import type { WebhookQueue } from './webhook-queue.ts';

/** Queues the webhooks of batches, builds their payloads, and records the outcome. */
export class BatchHooks implements WebhookReporter {
  readonly #batches: BatchStore;
  readonly #queue: WebhookQueue;

  constructor(redis: RedisClient, queue: WebhookQueue) {
    this.#batches = new BatchStore(redis);
    this.#queue = queue;
  }

  /** @throws AppError `service_unavailable` while Redis is unavailable */
  async queue({ accountId, batchId, url, status }: DueBatchHook): Promise<void> {
    const event = `batch.${status}` as BatchEvent;
    const delivery: WebhookDelivery = { v: 1, jobId: batchId, accountId, url, event };
    if (await this.#queue.add(delivery)) return;
    await this.report(delivery, tooManyUndelivered);
  }

  /** Returns null if the batch has been deleted. */
  async loadPayload(delivery: WebhookDelivery): Promise<BatchPayload | null> {
    const { accountId, jobId: id, event: type } = delivery;
    const batch = await this.#batches.find(accountId, id);
    if (batch === null || !hasBatchEnded(batch)) return null;
    const endedAtMs = batch.reachedAtMs[batch.status] ?? batch.createdAtMs;
    const event = { id: deliveryIdOf(delivery).replace('msg_', 'evt_'), object: 'event' } as const;
    return { ...event, created_at: Math.floor(endedAtMs / 1_000), type, data: { id } };
  }

  async report({ accountId, jobId }: WebhookDelivery, state: WebhookState): Promise<void> {
    await this.#batches.recordWebhook(accountId, jobId, JSON.stringify(state));
  }
}

/** Whether the webhook is that of a batch. */
export const isOfBatch = ({ event }: Pick<WebhookDelivery, 'event'>): boolean => event.startsWith('batch.');

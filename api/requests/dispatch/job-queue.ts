import type { Queue } from 'bullmq';
import { AppError } from '../../../shared/contract/errors.ts';
import { callRedis, type RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { encodeWholeJson } from '../../../shared/encoding/json-pieces.ts';
import {
  listRequests,
  type BullQueueName,
  type QueueItem,
  type QueuedJob,
} from '../../../shared/work/queue/job-kinds.ts';
import { nameItem } from '../../../shared/work/queue/item-name.ts';
import { openBullQueue } from '../../../shared/work/queue/open-bull-queue.ts';
import { maxInlineBytes } from '../../../shared/work/queue/payload-limits.ts';
import type { PayloadStore } from '../../../shared/work/queue/payload-store.ts';

/**
 * Maximum number of items waiting in a queue; further ones get a 503. An item of `embedding` is a batch of
 * many calls.
 */
const queueBounds: Record<BullQueueName, number> = {
  image: 100_000,
  'image-bulk': 100_000,
  embedding: 20_000,
  'embedding-bulk': 20_000,
};

/** How old the count of waiting items may be. The limit may be exceeded by the items that arrive in that time. */
const countLifetimeMs = 250;

/** Failed jobs are stored for operators to inspect, up to a number and an age in seconds. */
const storedFailures = { count: 1_000, age: 7 * 24 * 60 * 60 };

/** One BullMQ queue, for the api. */
export class JobQueue<T extends QueuedJob> {
  readonly #queue: Queue<QueueItem<T>>;
  readonly #name: BullQueueName;
  readonly #payloads: PayloadStore;
  #waiting = 0;
  #countedAtMs = 0;

  constructor(name: BullQueueName, redis: RedisClient, payloads: PayloadStore) {
    this.#name = name;
    this.#payloads = payloads;
    this.#queue = openBullQueue(name, redis, {
      // Routing retries by itself, so a failed job stays failed. BullMQ still reruns a job whose worker died.
      attempts: 1,
      removeOnComplete: true,
      removeOnFail: storedFailures,
    });
  }

  /**
   * @param priority the lowest number goes first; equal numbers are FIFO
   * @throws AppError `queue_full`, or `service_unavailable` while Redis is unavailable
   */
  async add(jobId: string, job: T, priority = 0): Promise<void> {
    await this.#checkNotFull();
    const requests = listRequests(job);
    // A large batch is mostly from one account, so it is encoded in the turns of its first request's account.
    const json = await encodeWholeJson(job, requests[0].accountId);
    let item: QueueItem<T> = job;
    if (json.length > maxInlineBytes) {
      await this.#payloads.put(jobId, json, Math.max(...requests.map(({ deadlineAtMs }) => deadlineAtMs)));
      const { replyChannel } = job;
      item = { v: 1, stored: jobId, bytes: json.length, replyChannel, requests };
    }
    try {
      await callRedis(
        async () => await this.#queue.add(nameItem(requests) as never, item as never, { jobId, priority }),
      );
    } catch (error) {
      // The job may be on the queue nevertheless, but no worker can run it without its payload.
      if (item !== job) this.dropPayload(jobId);
      throw error;
    }
    this.#waiting += 1;
  }

  /**
   * Deletes the stored payload of a job that is no longer needed. Callers need not wait: the payload expires anyway.
   */
  dropPayload(jobId: string): void {
    this.#payloads.drop(jobId);
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }

  async #checkNotFull(): Promise<void> {
    if (Date.now() - this.#countedAtMs > countLifetimeMs) {
      this.#countedAtMs = Date.now();
      this.#waiting = await callRedis(
        async () => await this.#queue.getJobCountByTypes('waiting', 'prioritized'),
      );
    }
    if (this.#waiting >= queueBounds[this.#name]) throw new AppError('queue_full');
  }
}

import type { Queue } from 'bullmq';
import { AppError } from '../contract/errors.ts';
import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { encodeLargeJson, isLongJson } from '../runtime/json-pieces.ts';
import {
  listRequests,
  type BullQueueName,
  type EmbeddingJob,
  type ImageJob,
  type QueueItem,
} from './job-kinds.ts';
import { openBullQueue } from './open-bull-queue.ts';
import { maxInlineBytes } from './payload-limits.ts';
import type { PayloadStore } from './payload-store.ts';

/** Items that may wait in one queue; one more is a 503. An item of `embedding` is a batch of many calls. */
const queueBounds: Record<BullQueueName, number> = {
  image: 100_000,
  'image-bulk': 100_000,
  embedding: 20_000,
  'embedding-bulk': 20_000,
};

/** How stale the count of waiting items may be: the bound is overshot by what arrives in that time. */
const countLifetimeMs = 250;

/** Failed jobs are kept for an operator to look at, up to a number and an age. */
const keptFailures = { count: 1_000, age: 7 * 24 * 60 * 60 };

type QueuedJob = EmbeddingJob | ImageJob;

/** In turns of the account; a batch that is large is mostly one account's, and takes those of the first. */
async function encodeJob(job: QueuedJob): Promise<Buffer> {
  if (!isLongJson(job, maxInlineBytes)) return Buffer.from(JSON.stringify(job));
  return await encodeLargeJson(job, listRequests(job)[0].accountId);
}

/** One queue of BullMQ, as the api sees it. */
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
      // Routing tries again by itself; a job that failed has failed. A job whose worker died runs again all the same.
      attempts: 1,
      removeOnComplete: true,
      removeOnFail: keptFailures,
    });
  }

  /**
   * @param priority the lowest number goes first; among the same, who came first
   * @throws AppError `queue_full`, or `service_unavailable` while Redis is away
   */
  async add(jobId: string, job: T, priority = 0): Promise<void> {
    await this.#refuseWhenFull();
    const json = await encodeJob(job);
    let item: QueueItem<T> = job;
    if (json.length > maxInlineBytes) {
      const requests = listRequests(job);
      await this.#payloads.put(jobId, json, Math.max(...requests.map(({ deadlineAtMs }) => deadlineAtMs)));
      const { replyChannel } = job;
      item = { v: 1, stored: jobId, bytes: json.length, replyChannel, requests };
    }
    try {
      await callRedis(
        async () => await this.#queue.add(job.kind as never, item as never, { jobId, priority }),
      );
    } catch (error) {
      // It is not taken from the queue any more, even if it came to lie there.
      if (item !== job) this.dropPayload(jobId);
      throw error;
    }
    this.#waiting += 1;
  }

  /** What is large of a job that nobody waits for any more. Need not be waited for: it goes by itself in the end. */
  dropPayload(jobId: string): void {
    this.#payloads.drop(jobId).catch(() => undefined);
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }

  async #refuseWhenFull(): Promise<void> {
    if (Date.now() - this.#countedAtMs > countLifetimeMs) {
      this.#countedAtMs = Date.now();
      this.#waiting = await callRedis(
        async () => await this.#queue.getJobCountByTypes('waiting', 'prioritized'),
      );
    }
    if (this.#waiting >= queueBounds[this.#name]) throw new AppError('queue_full');
  }
}

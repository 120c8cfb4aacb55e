import type { Queue } from 'bullmq';
import { releaseReservation } from '../work/settlement/settle-script.ts';
import { createDrainedError } from '../work/queue/drained-request.ts';
import { lanes } from '../work/queue/fair-share.ts';
import { isResponseStored, type AdmittedRequest } from '../money/admitted-request.ts';
import {
  bullQueues,
  listRequests,
  type ChatItem,
  type EmbeddingJob,
  type ImageJob,
  type QueueItem,
  type QueueName,
} from '../work/queue/job-kinds.ts';
import { withBullQueue } from '../work/queue/open-bull-queue.ts';
import { takeReady } from '../work/queue/ready-queue.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { encodeLastError } from '../work/replies/error-payload.ts';
import { StoredFramesStore } from '../work/replies/stored-frames-store.ts';

/** Number of requests read in one step. */
const pageSize = 500;

const drainedError = createDrainedError();

/**
 * Removes requests with waiting callers from a queue, releases their reservations, and fails them with 503.
 * @returns how many requests there were
 */
export async function drainCallers(redis: RedisClient, queue: QueueName): Promise<number> {
  return queue === 'chat' ? await drainChats(redis) : await drainBull(redis, queue);
}

async function drainChats(redis: RedisClient): Promise<number> {
  let count = 0;
  for (let items = await takeReady(redis, lanes, pageSize, 0); items.length > 0;) {
    for (const text of items) {
      const item = JSON.parse(text) as ChatItem;
      const requests = 'stored' in item ? item.requests : [item.request];
      count += await failRequests(redis, requests, item.replyChannel);
    }
    items = await takeReady(redis, lanes, pageSize, 0);
  }
  return count;
}

type BullItems = Queue<QueueItem<ImageJob | EmbeddingJob>>;

async function drainBull(redis: RedisClient, queue: keyof typeof bullQueues): Promise<number> {
  let count = 0;
  for (const name of bullQueues[queue])
    count += await withBullQueue(name, redis, (bull: BullItems) => drainOne(redis, bull));
  return count;
}

async function drainOne(redis: RedisClient, bull: BullItems): Promise<number> {
  let count = 0;
  for (let removed = Infinity; removed > 0;) {
    removed = 0;
    for (const { id, data } of await bull.getJobs(['waiting', 'prioritized'], 0, pageSize - 1)) {
      // If it cannot be removed, a worker has taken it in the meantime.
      if (id === undefined || (await bull.remove(id)) === 0) continue;
      removed += 1;
      const requests = 'stored' in data ? data.requests : listRequests(data);
      count += await failRequests(redis, requests, data.replyChannel);
    }
  }
  return count;
}

async function failRequests(
  redis: RedisClient,
  requests: readonly AdmittedRequest[],
  channel: string,
): Promise<number> {
  const frames = new StoredFramesStore(redis, redis);
  for (const request of requests) {
    await releaseReservation(redis, request);
    const frame = encodeLastError(request.requestId, drainedError);
    if (isResponseStored(request)) await frames.append(request, 'error', frame);
    await redis.spublish(channel, frame);
  }
  return requests.length;
}

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { WorkerRegistryStore } from '../work/queue/worker-registry-store.ts';
import type { QueueName } from '../work/queue/job-kinds.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { sendControl } from '../work/replies/worker-control.ts';

/** A live worker replies within milliseconds. */
const replyTimeoutMs = 3_000;
const pollMs = 20;

/** What workers had taken and cancelled. */
export interface DrainedWork {
  readonly requests: number;
  readonly jobs: number;
}

/** Has all workers of a queue cancel the requests and durable jobs that wait for a call slot. */
export async function drainSlotWaiters(redis: RedisClient, queue: QueueName): Promise<DrainedWork> {
  const workers = await new WorkerRegistryStore(redis).findAlive(queue);
  const reply = redisKeys.drained(randomUUID());
  const message = { action: 'drain', queue, reply } as const;
  const listening = await Promise.all(Array.from(workers, (id) => sendControl(redis, id, message)));
  let awaited = listening.filter(Boolean).length;
  const drained = { requests: 0, jobs: 0 };
  for (const untilMs = performance.now() + replyTimeoutMs; awaited > 0 && performance.now() < untilMs;) {
    const text = await redis.lpop(reply);
    if (text === null) {
      await delay(pollMs);
      continue;
    }
    const { requests, jobs } = JSON.parse(text) as DrainedWork;
    drained.requests += requests;
    drained.jobs += jobs;
    awaited -= 1;
  }
  return drained;
}

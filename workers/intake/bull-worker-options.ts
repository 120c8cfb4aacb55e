import type { WorkerOptions } from 'bullmq';
import { bullPrefix } from '../../shared/redis/redis-keys.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';

/** Webhooks and mails do not crash workers, so restarts of workers are no reason to give one up. */
const maxStalled = 100;

export interface BullWorkerSettings {
  /** A connection without a bound on retries, as BullMQ's workers want it. */
  readonly blocking: RedisClient;
  readonly concurrency: number;
  /** An item whose worker has been silent for this long is taken over by another worker. */
  readonly lockMs: number;
}

/** What the workers of queues have in common whose items do not end with the worker that has them. */
export function createBullWorkerOptions({ blocking, concurrency, lockMs }: BullWorkerSettings) {
  return {
    connection: blocking,
    prefix: bullPrefix,
    concurrency,
    lockDuration: lockMs,
    stalledInterval: Math.ceil(lockMs / 2),
    maxStalledCount: maxStalled,
  } satisfies WorkerOptions;
}

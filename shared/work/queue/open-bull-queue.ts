import { Queue, type DefaultJobOptions } from 'bullmq';
import { bullPrefix } from '../../platform/redis/redis-keys.ts';
import type { RedisClient } from '../../platform/redis/redis-client.ts';

/**
 * Opens a BullMQ queue for adding and inspecting jobs. By default BullMQ first reads Redis's version, and never tries
 * again if that fails. If Redis or this process stalled at that moment, every later call would fail until a restart.
 */
export function openBullQueue<T>(
  name: string,
  redis: RedisClient,
  defaultJobOptions: DefaultJobOptions = {},
): Queue<T> {
  const queue = new Queue<T>(name, {
    connection: redis,
    prefix: bullPrefix,
    skipVersionCheck: true,
    defaultJobOptions,
  });
  // Callers get the error of each command. This listener only stops the emitter from throwing.
  queue.on('error', () => undefined);
  return queue;
}

/** Uses a BullMQ queue, and closes it, whether or not that succeeds. */
export async function withBullQueue<T, Result>(
  name: string,
  redis: RedisClient,
  use: (queue: Queue<T>) => Promise<Result>,
): Promise<Result> {
  const queue = openBullQueue<T>(name, redis);
  try {
    return await use(queue);
  } finally {
    await queue.close();
  }
}

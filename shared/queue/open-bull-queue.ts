import { Queue, type DefaultJobOptions } from 'bullmq';
import { bullPrefix } from '../redis/redis-keys.ts';
import type { RedisClient } from '../redis/redis-client.ts';

/**
 * One of BullMQ's queues, to add to and to look at. BullMQ would ask Redis for its version first and keep a failure of that
 * for ever: where Redis, or this process, stood still for a moment then, every later call would fail until a restart.
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
  // Every command's failure reaches its caller; this one only keeps the emitter from throwing.
  queue.on('error', () => undefined);
  return queue;
}

import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'bullmq';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';

/** Longer than the maximum pause between two connection attempts. */
const reconnectMs = 2_000;
const pollMs = 20;

/**
 * Stops taking jobs and waits for running jobs. If Redis is down, jobs cannot be handed back in an orderly way; their
 * locks expire instead.
 */
export async function closeBullWorker<T>(worker: Worker<T>, connection: RedisClient): Promise<void> {
  await worker.close(!(await isConnected(worker, connection)));
}

/**
 * Returns whether both connections of the worker are ready. Waits for the blocking connection, which may take slightly
 * longer to reconnect than the other one. An orderly close in BullMQ waits for the blocking connection to end, which
 * never happens while it is reconnecting.
 */
async function isConnected<T>(worker: Worker<T>, connection: RedisClient): Promise<boolean> {
  const untilMs = performance.now() + reconnectMs;
  const blocking = await Promise.race([
    worker.getBackend().blockingClient,
    delay(reconnectMs, undefined, { ref: false }),
  ]);
  while (connection.status === 'ready' && performance.now() < untilMs) {
    if (blocking?.status === 'ready') return true;
    await delay(pollMs);
  }
  return false;
}

import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'bullmq';
import type { RedisClient } from '../../shared/redis/redis-client.ts';

/** More than the longest pause between two attempts to connect. */
const reconnectMs = 2_000;
const lookAgainMs = 20;

/**
 * Stops taking jobs and waits for those that run. Without Redis, jobs cannot be handed back in an orderly way;
 * their locks expire instead.
 */
export async function closeBullWorker<T>(worker: Worker<T>, connection: RedisClient): Promise<void> {
  await worker.close(!(await isConnected(worker, connection)));
}

/**
 * An orderly close in BullMQ waits for its blocking connection to end. That never happens while that connection
 * itself is reconnecting, which may take a moment longer than for the other connection.
 */
async function isConnected<T>(worker: Worker<T>, connection: RedisClient): Promise<boolean> {
  const untilMs = performance.now() + reconnectMs;
  const waiting = await Promise.race([
    worker.getBackend().blockingClient,
    delay(reconnectMs, undefined, { ref: false }),
  ]);
  while (connection.status === 'ready' && performance.now() < untilMs) {
    if (waiting?.status === 'ready') return true;
    await delay(lookAgainMs);
  }
  return false;
}

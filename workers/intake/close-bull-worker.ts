import { setTimeout as delay } from 'node:timers/promises';
import type { Worker } from 'bullmq';
import type { RedisClient } from '../../shared/redis/redis-client.ts';

/** Above the longest pause between two attempts to connect. */
const reconnectMs = 2_000;
const lookAgainMs = 20;

/**
 * Takes no more jobs, and waits for those in hand. Without Redis nothing can be handed back in order; the locks then run out
 * by themselves.
 */
export async function closeBullWorker<T>(worker: Worker<T>, connection: RedisClient): Promise<void> {
  await worker.close(!(await isConnected(worker, connection)));
}

/**
 * Closed in order, BullMQ waits for the end of the connection on which it waits for jobs. That never comes while the
 * connection itself waits to be made anew, as it may for a moment after the other one is back.
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

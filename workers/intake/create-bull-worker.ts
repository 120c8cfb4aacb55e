import { setTimeout as delay } from 'node:timers/promises';
import { Worker, type Processor, type WorkerOptions } from 'bullmq';
import { bullPrefix } from '../../shared/platform/redis/redis-keys.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { createThrottledWarning } from '../../shared/platform/runtime/throttled-warning.ts';
import { isTemporaryFailure, type Faults } from '../reporting/faults.ts';

/** High, because webhooks and mails do not crash workers, and worker restarts must not make them fail. */
const defaultMaxStalled = 100;
/** Pause before the next attempt after Redis rejects a command. */
const failurePauseMs = 500;

export interface BullWorkerSettings {
  readonly faults: Faults;
  readonly log: Logger;
  /** A client with the purpose `bullmq`. */
  readonly redis: RedisClient;
  readonly concurrency: number;
  /** An item whose worker has been silent for this long is taken over by another worker. */
  readonly lockMs: number;
  /** How many workers may die while running one item before it fails. */
  readonly maxStalled?: number;
  /** Observes each attempt to take an item. */
  readonly observe?: <R>(take: () => Promise<R>) => Promise<R>;
  readonly backoffStrategy?: NonNullable<WorkerOptions['settings']>['backoffStrategy'];
}

/**
 * Creates a worker of a BullMQ queue that survives Redis outages. By default BullMQ requests the next item
 * immediately after a failure. While a connection is down, every command fails without any I/O, so that loop would
 * starve the whole process. And after a failed blocking wait for work, BullMQ waits again without checking for work. If
 * every wait failed, it would never find any.
 */
export function createBullWorker<T>(
  queue: string,
  run: Processor<T>,
  {
    faults,
    log,
    redis,
    concurrency,
    lockMs,
    maxStalled = defaultMaxStalled,
    observe = (take) => take(),
    backoffStrategy,
  }: BullWorkerSettings,
): Worker<T> {
  const worker = new Worker<T>(queue, run, {
    connection: redis,
    prefix: bullPrefix,
    concurrency,
    lockDuration: lockMs,
    stalledInterval: Math.ceil(lockMs / 2),
    maxStalledCount: maxStalled,
    ...(backoffStrategy === undefined ? {} : { settings: { backoffStrategy } }),
  });
  const backend = worker.getBackend();
  const notedErrors = new WeakSet<Error>();
  /**
   * Reports the failure and pauses. Remembers the error in `notedErrors`, because BullMQ also emits some of these
   * failures as `error` events.
   */
  async function pauseAfter(part: string, error: unknown): Promise<void> {
    notedErrors.add(error as Error);
    faults.note(part, error);
    await delay(failurePauseMs);
  }
  const takingPart = `taking items of the queue ${queue}`;
  const waitingPart = `waiting for items of the queue ${queue}`;
  const moveToActive = backend.moveToActive.bind(backend);
  backend.moveToActive = async (...args) => {
    try {
      const item = await observe(() => moveToActive(...args));
      faults.clear(takingPart);
      return item;
    } catch (error) {
      await pauseAfter(takingPart, error);
      throw error;
    }
  };
  const waitForJob = backend.waitForJob.bind(backend);
  backend.waitForJob = async (timeoutSeconds) => {
    try {
      const item = await observe(() => waitForJob(timeoutSeconds));
      faults.clear(waitingPart);
      return item;
    } catch (error) {
      // Closing the worker ends its wait.
      if (worker.closing !== undefined) return null;
      await pauseAfter(waitingPart, error);
      // BullMQ treats this as a timeout and checks for work.
      return null;
    }
  };
  const warn = createThrottledWarning((message, error) => log.warn({ queue, err: error }, message));
  worker.on('error', (error) => {
    if (notedErrors.has(error)) return;
    if (isTemporaryFailure(error)) log.debug({ queue, err: error }, 'waiting for Redis');
    else warn('BullMQ error', error);
  });
  return worker;
}

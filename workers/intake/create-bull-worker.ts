import { setTimeout as delay } from 'node:timers/promises';
import {
  createRedisBackend,
  Worker,
  type BackendFactory,
  type IQueueBackend,
  type Processor,
  type RedisQueueBackend,
  type WorkerOptions,
} from 'bullmq';
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
  settings: BullWorkerSettings,
): Worker<T> {
  const { log, redis, concurrency, lockMs, maxStalled = defaultMaxStalled, backoffStrategy } = settings;
  const notedErrors = new WeakSet<Error>();
  const worker: Worker<T> = new Worker<T>(
    queue,
    run,
    {
      connection: redis,
      prefix: bullPrefix,
      concurrency,
      lockDuration: lockMs,
      stalledInterval: Math.ceil(lockMs / 2),
      maxStalledCount: maxStalled,
      ...(backoffStrategy === undefined ? {} : { settings: { backoffStrategy } }),
    },
    createBackendFactory(queue, settings, notedErrors, () => worker.closing !== undefined),
  );
  const warn = createThrottledWarning((message, error) => log.warn({ queue, err: error }, message));
  worker.on('error', (error) => {
    if (notedErrors.has(error)) return;
    if (isTemporaryFailure(error)) log.debug({ queue, err: error }, 'waiting for Redis');
    else warn('BullMQ error', error);
  });
  return worker;
}

/**
 * Extends BullMQ's access to Redis: a failure to take an item, or to wait for one, is reported and followed by a pause.
 * @param notedErrors gets every reported error, because BullMQ also emits some of them as `error` events
 */
function createBackendFactory(
  queue: string,
  { faults, observe = (take) => take() }: BullWorkerSettings,
  notedErrors: WeakSet<Error>,
  isClosing: () => boolean,
): BackendFactory<RedisQueueBackend> {
  const takingPart = `taking items of the queue ${queue}`;
  const waitingPart = `waiting for items of the queue ${queue}`;
  async function pauseAfter(part: string, error: unknown): Promise<void> {
    notedErrors.add(error as Error);
    faults.note(part, error);
    await delay(failurePauseMs);
  }
  return (...args) => {
    const backend = createRedisBackend(...args);
    const moveToActive = backend.moveToActive.bind(backend);
    const waitForJob = backend.waitForJob.bind(backend);
    const patient: Pick<IQueueBackend, 'moveToActive' | 'waitForJob'> = {
      async moveToActive(...taken) {
        try {
          const item = await observe(() => moveToActive(...taken));
          faults.clear(takingPart);
          return item;
        } catch (error) {
          await pauseAfter(takingPart, error);
          throw error;
        }
      },
      async waitForJob(timeoutSeconds) {
        try {
          const item = await observe(() => waitForJob(timeoutSeconds));
          faults.clear(waitingPart);
          return item;
        } catch (error) {
          // Closing the worker ends its wait. BullMQ treats null as a timeout, and checks for work.
          if (!isClosing()) await Promise.all([pauseAfter(waitingPart, error), reopenBlocking(backend)]);
          return null;
        }
      },
    };
    return Object.assign(backend, patient);
  };
}

/**
 * Opens the connection on which BullMQ waits for work again if it has ended. BullMQ replaces one whose wait takes too long,
 * as after the process was frozen. If the old one fails before it has ended, BullMQ never opens another, and the worker
 * would only find work after each pause.
 */
async function reopenBlocking(
  backend: IQueueBackend & Pick<RedisQueueBackend, 'blockingClient'>,
): Promise<void> {
  const client = await backend.blockingClient;
  // It may be down again. Then the next wait fails too.
  if (client?.status === 'end') await backend.reconnectBlocking().catch(() => undefined);
}

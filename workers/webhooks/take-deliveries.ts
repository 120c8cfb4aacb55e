import { ErrorCode, Worker, type Job as BullJob, type Queue } from 'bullmq';
import { openBullQueue } from '../../shared/queue/open-bull-queue.ts';
import { callRedis, type RedisClient } from '../../shared/redis/redis-client.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import type { WebhookDelivery } from '../../shared/webhooks/webhook-delivery.ts';
import { webhookQueueName } from '../../shared/webhooks/webhook-queue.ts';
import { createBullWorkerOptions } from '../intake/bull-worker-options.ts';
import { closeBullWorker } from '../intake/close-bull-worker.ts';
import {
  AttemptFailed,
  DeliveryFailed,
  deliverWebhook,
  reportState,
  type DeliveryDependencies,
} from './deliver-webhook.ts';
import { DeliveryTurns } from './delivery-turns.ts';
import { computeRetryDelayMs } from './retry-delay.ts';
import { WaitingDeliveries } from './waiting-deliveries.ts';

/** Concurrent attempts of a process, over all accounts. */
const defaultConcurrency = 32;

/** A delivery whose worker has been silent for this long is taken over by another worker. */
const defaultLockMs = 10_000;

export interface WebhookIntakeOptions extends Omit<
  DeliveryDependencies,
  'turns' | 'waiting' | 'computeRetryDelayMs'
> {
  /** A connection without a bound on retries, as BullMQ's workers want it. */
  readonly blocking: RedisClient;
  readonly concurrency?: number;
  /** For tests, which cannot wait for hours. */
  readonly computeRetryDelayMs?: DeliveryDependencies['computeRetryDelayMs'];
  readonly lockMs?: number;
}

/** Takes webhooks off their queue and delivers each at least once. */
export function startWebhookIntake(options: WebhookIntakeOptions): Running {
  const { redis, log, blocking, concurrency = defaultConcurrency, lockMs = defaultLockMs } = options;
  const queue = openBullQueue<WebhookDelivery>(webhookQueueName, redis);
  const dependencies: DeliveryDependencies = {
    ...options,
    turns: new DeliveryTurns(),
    waiting: new WaitingDeliveries(redis, (deliveryId) => wakeDelivery(queue, deliveryId)),
    computeRetryDelayMs: options.computeRetryDelayMs ?? computeRetryDelayMs,
  };
  const worker = new Worker<WebhookDelivery>(
    webhookQueueName,
    async (job, token) => await deliverWebhook(dependencies, job, token),
    {
      ...createBullWorkerOptions({ blocking, concurrency, lockMs }),
      settings: {
        backoffStrategy: (attempts, _type, error) =>
          error instanceof AttemptFailed
            ? error.retryDelayMs
            : dependencies.computeRetryDelayMs(attempts, null),
      },
    },
  );
  worker.on('error', (error) => log.debug({ queue: webhookQueueName, err: error }, 'waiting for Redis'));
  worker.on('failed', (job, error) => {
    if (error instanceof AttemptFailed) return;
    log.warn({ queue: webhookQueueName, jobId: job?.data.jobId, err: error }, 'webhook failed');
    if (job === undefined || job.finishedOn === undefined || error instanceof DeliveryFailed) return;
    runInBackground(reportGivenUp(dependencies, job), 'report of a webhook', log);
  });
  return {
    async stop() {
      await closeBullWorker(worker, blocking);
      await queue.close();
    },
  };
}

/** @returns false if it is not delayed any more, or gone */
async function wakeDelivery(queue: Queue<WebhookDelivery>, deliveryId: string): Promise<boolean> {
  const job = await callRedis(() => queue.getJob(deliveryId));
  if (job === undefined) return false;
  try {
    await job.promote();
    return true;
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === ErrorCode.JobNotInState) return false;
    throw error;
  }
}

/** BullMQ gave up by itself, for example after too many workers died during the delivery. */
async function reportGivenUp(
  dependencies: DeliveryDependencies,
  { data, attemptsMade }: BullJob<WebhookDelivery>,
): Promise<void> {
  const lastError = 'The delivery was interrupted too often.';
  await reportState(dependencies, data, {
    status: 'failed',
    attempts: attemptsMade,
    lastStatus: null,
    lastError,
    nextAttemptAt: null,
  });
}

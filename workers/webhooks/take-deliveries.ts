import { ErrorCode, type Job as BullJob, type Queue } from 'bullmq';
import { openBullQueue } from '../../shared/queue/open-bull-queue.ts';
import { callRedis, type RedisClient } from '../../shared/redis/redis-client.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import type { Faults } from '../../shared/storage/faults.ts';
import type { WebhookDelivery } from '../../shared/webhooks/webhook-delivery.ts';
import { webhookQueueName } from '../../shared/webhooks/webhook-queue.ts';
import { closeBullWorker } from '../intake/close-bull-worker.ts';
import { createBullWorker } from '../intake/create-bull-worker.ts';
import {
  AttemptFailed,
  DeliveryFailed,
  deliverWebhook,
  reportState,
  type DeliveryDeps,
} from './deliver-webhook.ts';
import { DeliverySlots } from './delivery-slots.ts';
import { computeRetryDelayMs } from './retry-delay.ts';
import { WaitingDeliveries } from './waiting-deliveries.ts';

/** Concurrent attempts per process, over all accounts. */
const defaultConcurrency = 32;

/** If a delivery's worker is silent for this long, another worker takes over the delivery. */
const defaultLockMs = 10_000;

export interface WebhookIntakeOptions extends Omit<
  DeliveryDeps,
  'slots' | 'waiting' | 'computeRetryDelayMs'
> {
  readonly bullmq: RedisClient;
  readonly faults: Faults;
  readonly concurrency?: number;
  /** For tests, which cannot wait for hours. */
  readonly computeRetryDelayMs?: DeliveryDeps['computeRetryDelayMs'];
  readonly lockMs?: number;
}

/** Takes webhooks off their queue and delivers each at least once. */
export function startWebhookIntake(options: WebhookIntakeOptions): Running {
  const { redis, faults, log, bullmq, concurrency = defaultConcurrency, lockMs = defaultLockMs } = options;
  const queue = openBullQueue<WebhookDelivery>(webhookQueueName, redis);
  const dependencies: DeliveryDeps = {
    ...options,
    slots: new DeliverySlots(),
    waiting: new WaitingDeliveries(redis, (deliveryId) => wakeDelivery(queue, deliveryId)),
    computeRetryDelayMs: options.computeRetryDelayMs ?? computeRetryDelayMs,
  };
  const worker = createBullWorker<WebhookDelivery>(
    webhookQueueName,
    async (job, token) => await deliverWebhook(dependencies, job, token),
    {
      faults,
      log,
      redis: bullmq,
      concurrency,
      lockMs,
      backoffStrategy: (attempts, _type, error) =>
        error instanceof AttemptFailed
          ? error.retryDelayMs
          : dependencies.computeRetryDelayMs(attempts, null),
    },
  );
  worker.on('failed', (job, error) => {
    if (error instanceof AttemptFailed) return;
    log.warn({ queue: webhookQueueName, jobId: job?.data.jobId, err: error }, 'webhook failed');
    if (job === undefined || job.finishedOn === undefined || error instanceof DeliveryFailed) return;
    runInBackground(reportAbandoned(dependencies, job), 'reporting a failed webhook', log);
  });
  return {
    async stop() {
      await closeBullWorker(worker, bullmq);
      await queue.close();
    },
  };
}

/** @returns false if the delivery is no longer delayed, or is gone */
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

/** Reports a delivery that BullMQ gave up on, for example because too many workers died while running it. */
async function reportAbandoned(
  dependencies: DeliveryDeps,
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

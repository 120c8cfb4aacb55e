// decision 0051
import { ErrorCode, type Job as BullJob, type Queue } from 'bullmq';
import { openBullQueue } from '../../../shared/work/queue/open-bull-queue.ts';
import { callRedis, type RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import type { Running } from '../../../shared/platform/runtime/lifecycle.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';
import type { Faults } from '../../reporting/faults.ts';
import { webhookQueueName, type WebhookDelivery } from '../../../shared/work/webhook-delivery.ts';
import { closeBullWorker } from '../../intake/close-bull-worker.ts';
import { createBullWorker } from '../../intake/create-bull-worker.ts';
import { AttemptFailed, computeRetryDelayMs, DeliveryFailed, reportState } from './conclude-attempt.ts';
import { deliverWebhook, type DeliveryDeps } from './deliver-webhook.ts';
import { DeliveryLanes, type LaneLimits } from './delivery-lanes.ts';
import { DeliveryTurns } from './delivery-turns.ts';
import { ReceiverRecords } from './receiver-records.ts';
import { WaitingDeliveries } from './waiting-deliveries.ts';
import { liveness } from '../../../shared/platform/redis/liveness.ts';

/**
 * Interval at which waiting deliveries are woken if there are places for them. Most are woken earlier, when an attempt
 * ends; this covers workers that died, and receivers that have become prompt.
 */
const fillIntervalMs = 1_000;

export interface WebhookIntakeOptions extends Omit<
  DeliveryDeps,
  'lanes' | 'turns' | 'receivers' | 'waiting' | 'computeRetryDelayMs'
> {
  readonly bullmq: RedisClient;
  readonly faults: Faults;
  /** Only tests set this and the following options. */
  readonly laneLimits?: LaneLimits;
  readonly computeRetryDelayMs?: DeliveryDeps['computeRetryDelayMs'];
  readonly lockMs?: number;
}

/** Takes webhooks off their queue and delivers each at least once. */
export function startWebhookIntake(options: WebhookIntakeOptions): Running {
  const { redis, faults, log, bullmq, laneLimits, lockMs = liveness.queueItem.deadMs } = options;
  const queue = openBullQueue<WebhookDelivery>(webhookQueueName, redis);
  const lanes = new DeliveryLanes(laneLimits);
  const waiting = new WaitingDeliveries(redis, (deliveryId) => wakeDelivery(queue, deliveryId));
  const turns = new DeliveryTurns(lanes, waiting, log);
  lanes.onPlaceFreed = (lane) => runInBackground(turns.fill(lane, 1), 'waking a webhook', log);
  const dependencies: DeliveryDeps = {
    ...options,
    lanes,
    turns,
    receivers: new ReceiverRecords(redis),
    waiting,
    computeRetryDelayMs: options.computeRetryDelayMs ?? computeRetryDelayMs,
  };
  const worker = createBullWorker<WebhookDelivery>(
    webhookQueueName,
    async (job, token) => await deliverWebhook(dependencies, job, token),
    {
      faults,
      log,
      redis: bullmq,
      concurrency: lanes.size,
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
  const timer = setInterval(
    () => runInBackground(fillIdlePlaces(queue, turns, log), 'waking webhooks', log),
    fillIntervalMs,
  );
  return {
    async stop() {
      clearInterval(timer);
      await closeBullWorker(worker, bullmq);
      await queue.close();
    },
  };
}

/** Deliveries that are due fill the places themselves, so waking more would only make them wait again. */
async function fillIdlePlaces(
  queue: Queue<WebhookDelivery>,
  turns: DeliveryTurns,
  log: Logger,
): Promise<void> {
  try {
    if ((await callRedis(() => queue.getWaitingCount())) === 0) await turns.fillAll();
  } catch (error) {
    log.debug({ err: error }, 'counting webhooks failed');
  }
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
  const lastError = 'The delivery was interrupted too many times.';
  await reportState(dependencies, data, {
    status: 'failed',
    attempts: attemptsMade,
    lastStatus: null,
    lastError,
    nextAttemptAt: null,
  });
}

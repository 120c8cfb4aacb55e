import { DelayedError, UnrecoverableError, type Job as BullJob } from 'bullmq';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import {
  deliveryIdOf,
  maxPayloadBytes,
  type LoadWebhookPayload,
  type WebhookDelivery,
  type WebhookReporter,
  type WebhookState,
} from '../../shared/webhooks/webhook-delivery.ts';
import { removeUndelivered, webhookAttempts } from '../../shared/webhooks/webhook-queue.ts';
import type { WebhookSecretStore } from '../../shared/webhooks/webhook-secret-store.ts';
import type { DeliverySlots } from './delivery-slots.ts';
import type { computeRetryDelayMs } from './retry-delay.ts';
import { signWebhook } from './sign-webhook.ts';
import type { WaitingDeliveries } from './waiting-deliveries.ts';
import type { WebhookClient, WebhookResponse } from './webhook-client.ts';

export interface DeliveryDeps {
  readonly redis: RedisClient;
  readonly client: WebhookClient;
  readonly secrets: Pick<WebhookSecretStore, 'listSigning'>;
  readonly loadPayload: LoadWebhookPayload;
  readonly reporter: WebhookReporter;
  readonly slots: DeliverySlots;
  readonly waiting: WaitingDeliveries;
  readonly computeRetryDelayMs: typeof computeRetryDelayMs;
  readonly log: Logger;
}

/** The attempt failed, and another one follows after `retryDelayMs`. */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed';
  readonly retryDelayMs: number;

  constructor(message: string, retryDelayMs: number) {
    super(message);
    this.retryDelayMs = retryDelayMs;
  }
}

/** The delivery has permanently failed and has been reported as failed. */
export class DeliveryFailed extends UnrecoverableError {}

/** The receiver does not want this webhook any more. */
const goneStatus = 410;

/** How long a delivery waits, if nothing wakes it, before it tries again to start an attempt. */
const slotPauseMs = 60_000;
/** Pause after a failure on our side, which does not count as an attempt. */
const internalFailurePauseMs = 10_000;
/** After a failure on our side, a delivery older than this fails. It is longer than all attempts would take. */
const maxAgeMs = 48 * 60 * 60 * 1_000;

/**
 * Processes a BullMQ job: makes one attempt, and resolves when the receiver has accepted the webhook.
 * @throws AttemptFailed if another attempt follows; DeliveryFailed if none does; DelayedError if the delivery was put
 * back on the queue without an attempt
 */
export async function deliverWebhook(
  dependencies: DeliveryDeps,
  bullJob: BullJob<WebhookDelivery>,
  token: string | undefined,
): Promise<void> {
  const { slots } = dependencies;
  const delivery = bullJob.data;
  const releaseSlot = slots.tryBegin(delivery.accountId);
  if (releaseSlot === null) return await waitForSlot(dependencies, bullJob, token);
  let isInternalFailure = false;
  try {
    const prepared = await prepare(dependencies, bullJob);
    isInternalFailure = prepared === null;
    if (prepared === null) return await putBack(dependencies, bullJob, token, internalFailurePauseMs);
    const response =
      'reason' in prepared
        ? prepared
        : await dependencies.client.post(delivery.url, prepared.headers, prepared.body);
    await conclude(dependencies, bullJob, response);
  } finally {
    releaseSlot();
    // After a failure on our side, the next delivery would fail in the same way, so all waiting deliveries would be
    // woken and put back again and again.
    if (!isInternalFailure) await wakeNext(dependencies, delivery);
  }
}

/** Puts the delivery back on the queue because the account is at its limit of concurrent attempts. */
async function waitForSlot(
  dependencies: DeliveryDeps,
  bullJob: BullJob<WebhookDelivery>,
  token: string | undefined,
): Promise<never> {
  try {
    return await putBack(dependencies, bullJob, token, slotPauseMs);
  } finally {
    // All attempts may have ended before this delivery joined the wait queue, so nothing would wake it.
    if (dependencies.slots.isFree(bullJob.data.accountId)) await wakeNext(dependencies, bullJob.data);
  }
}

/**
 * Delays the delivery until it is woken.
 * @param minPauseMs the delay if only a few deliveries wait
 */
async function putBack(
  { waiting, log }: DeliveryDeps,
  bullJob: BullJob<WebhookDelivery>,
  token: string | undefined,
  minPauseMs: number,
): Promise<never> {
  const { accountId, jobId } = bullJob.data;
  // BullMQ uses a separate connection, which may work when this one does not.
  const pauseMs = await waiting.readPauseMs(accountId, minPauseMs).catch(() => minPauseMs);
  await bullJob.moveToDelayed(Date.now() + pauseMs, token);
  try {
    await waiting.join(bullJob);
  } catch (error) {
    log.warn({ jobId, err: error }, 'registering a delayed webhook failed; it is retried after its delay');
  }
  throw new DelayedError();
}

/**
 * Wakes the next waiting delivery. A failure is only logged: waiting deliveries are retried after their delays, and the
 * attempt keeps its outcome.
 */
async function wakeNext({ waiting, log }: DeliveryDeps, { accountId }: WebhookDelivery): Promise<void> {
  try {
    await waiting.wakeNext(accountId);
  } catch (error) {
    log.warn({ accountId, err: error }, 'waking a delayed webhook failed; it is retried after its delay');
  }
}

/** The webhook can never be sent. */
interface Unsendable {
  readonly reason: string;
}

/**
 * Builds the request of this attempt.
 * @returns null after a failure on our side that may be temporary
 */
async function prepare(
  { secrets, loadPayload, waiting, log }: DeliveryDeps,
  bullJob: BullJob<WebhookDelivery>,
): Promise<{ readonly headers: Record<string, string>; readonly body: string } | Unsendable | null> {
  const delivery = bullJob.data;
  try {
    const [payload, signing] = await Promise.all([
      loadPayload(delivery),
      secrets.listSigning(delivery.accountId),
      waiting.remove(bullJob),
    ]);
    if (payload === null) return { reason: 'The job is no longer kept.' };
    const body = JSON.stringify(payload);
    const bytes = Buffer.byteLength(body);
    if (bytes > maxPayloadBytes) {
      log.error({ jobId: delivery.jobId, bytes, maxPayloadBytes }, 'webhook payload too large');
      return { reason: 'The job is too large for a webhook.' };
    }
    return { headers: signWebhook(deliveryIdOf(delivery), body, signing, new Date()), body };
  } catch (error) {
    log.warn({ jobId: delivery.jobId, err: error }, 'preparing a webhook failed');
    return Date.now() - bullJob.timestamp > maxAgeMs ? { reason: 'It could not be sent in time.' } : null;
  }
}

/** Reports the outcome of the attempt, and throws if it failed. */
async function conclude(
  dependencies: DeliveryDeps,
  bullJob: BullJob<WebhookDelivery>,
  response: WebhookResponse | Unsendable,
): Promise<void> {
  const isSendable = !('reason' in response);
  const attempts = bullJob.attemptsMade + (isSendable ? 1 : 0);
  const status = isSendable ? response.status : null;
  const lastError = isSendable ? describeFailure(response) : response.reason;
  const base = { attempts, lastStatus: status, lastError };
  if (lastError === null) {
    await reportState(dependencies, bullJob.data, { ...base, status: 'delivered', nextAttemptAt: null });
    return;
  }
  if (!isSendable || status === goneStatus || attempts >= webhookAttempts) {
    await reportState(dependencies, bullJob.data, { ...base, status: 'failed', nextAttemptAt: null });
    throw new DeliveryFailed(lastError);
  }
  const retryDelayMs = dependencies.computeRetryDelayMs(attempts, response.retryAfterMs);
  const nextAttemptAt = new Date(Date.now() + retryDelayMs);
  await reportState(dependencies, bullJob.data, { ...base, status: 'pending', nextAttemptAt });
  throw new AttemptFailed(lastError, retryDelayMs);
}

function describeFailure({ status, error }: WebhookResponse): string | null {
  if (status === null) return error;
  if (status >= 200 && status < 300) return null;
  const isRedirect = status >= 300 && status < 400;
  return `The server responded with status ${status}${isRedirect ? '; redirects are not followed' : ''}.`;
}

/**
 * Reports a delivery's state. A failure is only logged, because it must not cause the webhook to be sent again.
 */
export async function reportState(
  { redis, reporter, log }: Pick<DeliveryDeps, 'redis' | 'reporter' | 'log'>,
  delivery: WebhookDelivery,
  state: WebhookState,
): Promise<void> {
  const { jobId } = delivery;
  try {
    await Promise.all([
      reporter.report(delivery, state),
      state.status === 'pending' ? null : removeUndelivered(redis, delivery),
    ]);
  } catch (error) {
    log.error({ jobId, state, err: error }, 'reporting a webhook state failed');
  }
}

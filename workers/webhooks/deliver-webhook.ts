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
import { countOutDelivery, webhookAttempts } from '../../shared/webhooks/webhook-queue.ts';
import type { WebhookSecretStore } from '../../shared/webhooks/webhook-secret-store.ts';
import type { DeliveryTurns } from './delivery-turns.ts';
import type { computeRetryDelayMs } from './retry-delay.ts';
import { signWebhook } from './sign-webhook.ts';
import type { WebhookClient, WebhookResponse } from './webhook-client.ts';

export interface DeliveryDependencies {
  readonly redis: RedisClient;
  readonly client: WebhookClient;
  readonly secrets: Pick<WebhookSecretStore, 'listSigning'>;
  readonly loadPayload: LoadWebhookPayload;
  readonly reporter: WebhookReporter;
  readonly turns: DeliveryTurns;
  readonly computeRetryDelayMs: typeof computeRetryDelayMs;
  readonly log: Logger;
}

/** An attempt failed and another follows; BullMQ keeps the message and is told the pause by `retryDelayMs`. */
export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed';
  readonly retryDelayMs: number;

  constructor(message: string, retryDelayMs: number) {
    super(message);
    this.retryDelayMs = retryDelayMs;
  }
}

/** The delivery failed for good, and has been reported as failed. */
export class DeliveryFailed extends UnrecoverableError {}

/** By 410 a receiver says that it will never want this webhook. */
const goneStatus = 410;

/** After trouble of our own, which says nothing about the receiver and uses up no attempt. */
const ownTroublePauseMs = 10_000;
/** Trouble of our own that goes on for longer than all attempts would take ends the delivery. */
const maxAgeMs = 48 * 60 * 60 * 1_000;

/**
 * One attempt at a delivery, as a job of BullMQ: it resolves when the receiver has taken the webhook.
 * @throws AttemptFailed where another attempt follows; DeliveryFailed where none does; DelayedError where the delivery was
 *   put back on the queue without an attempt
 */
export async function deliverWebhook(
  dependencies: DeliveryDependencies,
  bullJob: BullJob<WebhookDelivery>,
  token: string | undefined,
): Promise<void> {
  const { turns } = dependencies;
  const delivery = bullJob.data;
  const endTurn = turns.tryBegin(delivery.accountId);
  if (endTurn === null) return await putBack(bullJob, token, turns.defer(delivery.accountId));
  try {
    const prepared = await prepare(dependencies, bullJob);
    if (prepared === null) return await putBack(bullJob, token, ownTroublePauseMs);
    const response =
      'fault' in prepared
        ? prepared
        : await dependencies.client.post(delivery.url, prepared.headers, prepared.body);
    await conclude(dependencies, bullJob, response);
  } finally {
    endTurn();
  }
}

async function putBack(
  bullJob: BullJob<WebhookDelivery>,
  token: string | undefined,
  delayMs: number,
): Promise<never> {
  await bullJob.moveToDelayed(Date.now() + delayMs, token);
  throw new DelayedError();
}

/** Nothing can be sent, now or later. */
interface Unsendable {
  readonly fault: string;
}

/** What is sent in this attempt; null where it cannot be made now because of trouble of our own. */
async function prepare(
  { secrets, loadPayload, log }: DeliveryDependencies,
  bullJob: BullJob<WebhookDelivery>,
): Promise<{ readonly headers: Record<string, string>; readonly body: string } | Unsendable | null> {
  const delivery = bullJob.data;
  try {
    const [payload, signing] = await Promise.all([
      loadPayload(delivery),
      secrets.listSigning(delivery.accountId),
    ]);
    if (payload === null) return { fault: 'The job is no longer kept.' };
    const body = JSON.stringify(payload);
    const bytes = Buffer.byteLength(body);
    if (bytes > maxPayloadBytes) {
      log.error({ jobId: delivery.jobId, bytes, maxPayloadBytes }, 'webhook payload too large');
      return { fault: 'The job is too large for a webhook.' };
    }
    return { headers: signWebhook(deliveryIdOf(delivery), body, signing, new Date()), body };
  } catch (error) {
    log.warn({ jobId: delivery.jobId, err: error }, 'webhook could not be prepared');
    return Date.now() - bullJob.timestamp > maxAgeMs ? { fault: 'It could not be sent in time.' } : null;
  }
}

/** Reports how the attempt went, and throws where it failed. */
async function conclude(
  dependencies: DeliveryDependencies,
  bullJob: BullJob<WebhookDelivery>,
  response: WebhookResponse | Unsendable,
): Promise<void> {
  const isSendable = !('fault' in response);
  const attempts = bullJob.attemptsMade + (isSendable ? 1 : 0);
  const status = isSendable ? response.status : null;
  const lastError = isSendable ? describeFailure(response) : response.fault;
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

/** A state that cannot be reported changes nothing of the delivery: the receiver must not get it again for that. */
export async function reportState(
  { redis, reporter, log }: Pick<DeliveryDependencies, 'redis' | 'reporter' | 'log'>,
  delivery: WebhookDelivery,
  state: WebhookState,
): Promise<void> {
  const { jobId } = delivery;
  try {
    await Promise.all([
      reporter.report(delivery, state),
      state.status === 'pending' ? null : countOutDelivery(redis, delivery),
    ]);
  } catch (error) {
    log.error({ jobId, state, err: error }, 'webhook state could not be reported');
  }
}

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
import type { WaitingDeliveries } from './waiting-deliveries.ts';
import type { WebhookClient, WebhookResponse } from './webhook-client.ts';

export interface DeliveryDependencies {
  readonly redis: RedisClient;
  readonly client: WebhookClient;
  readonly secrets: Pick<WebhookSecretStore, 'listSigning'>;
  readonly loadPayload: LoadWebhookPayload;
  readonly reporter: WebhookReporter;
  readonly turns: DeliveryTurns;
  readonly waiting: WaitingDeliveries;
  readonly computeRetryDelayMs: typeof computeRetryDelayMs;
  readonly log: Logger;
}

/** An attempt failed and another one follows after `retryDelayMs`. */
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

/** The receiver does not want this webhook any more. */
const goneStatus = 410;

/** After how long a delivery looks for a turn by itself, in case nobody wakes it. */
const turnPauseMs = 60_000;
/** Pause after a failure on our side, which does not count as an attempt. */
const ownTroublePauseMs = 10_000;
/** Failures on our side end a delivery that is older than this, which is longer than all attempts would take. */
const maxAgeMs = 48 * 60 * 60 * 1_000;

/**
 * Processes a job of BullMQ: makes one attempt, and resolves when the receiver has accepted the webhook.
 * @throws AttemptFailed if another attempt follows; DeliveryFailed if none does; DelayedError if the delivery went back to the
 *   queue without an attempt
 */
export async function deliverWebhook(
  dependencies: DeliveryDependencies,
  bullJob: BullJob<WebhookDelivery>,
  token: string | undefined,
): Promise<void> {
  const { turns } = dependencies;
  const delivery = bullJob.data;
  const endTurn = turns.tryBegin(delivery.accountId);
  if (endTurn === null) return await waitForTurn(dependencies, bullJob, token);
  let isOwnTrouble = false;
  try {
    const prepared = await prepare(dependencies, bullJob);
    isOwnTrouble = prepared === null;
    if (prepared === null) return await putBack(dependencies, bullJob, token, ownTroublePauseMs);
    const response =
      'fault' in prepared
        ? prepared
        : await dependencies.client.post(delivery.url, prepared.headers, prepared.body);
    await conclude(dependencies, bullJob, response);
  } finally {
    endTurn();
    // The next one would meet the same trouble, and so all that wait would be moved again and again.
    if (!isOwnTrouble) await wakeNext(dependencies, delivery);
  }
}

/** The account is at its limit. */
async function waitForTurn(
  dependencies: DeliveryDependencies,
  bullJob: BullJob<WebhookDelivery>,
  token: string | undefined,
): Promise<never> {
  try {
    return await putBack(dependencies, bullJob, token, turnPauseMs);
  } finally {
    // The attempts may have ended before it had joined, and woken nobody.
    if (dependencies.turns.isFree(bullJob.data.accountId)) await wakeNext(dependencies, bullJob.data);
  }
}

/** The delivery is delayed, and waits to be woken. @param leastPauseMs its delay, where only a few wait */
async function putBack(
  { waiting, log }: DeliveryDependencies,
  bullJob: BullJob<WebhookDelivery>,
  token: string | undefined,
  leastPauseMs: number,
): Promise<never> {
  const { accountId, jobId } = bullJob.data;
  // The queue has a connection of its own: it may be reached where this cannot.
  const pauseMs = await waiting.readPauseMs(accountId, leastPauseMs).catch(() => leastPauseMs);
  await bullJob.moveToDelayed(Date.now() + pauseMs, token);
  try {
    await waiting.join(bullJob);
  } catch (error) {
    log.warn({ jobId, err: error }, 'webhook cannot be woken; it comes back after its delay');
  }
  throw new DelayedError();
}

/** A failure is logged: those that wait come back after their delays, and the attempt keeps its outcome. */
async function wakeNext(
  { waiting, log }: DeliveryDependencies,
  { accountId }: WebhookDelivery,
): Promise<void> {
  try {
    await waiting.wakeNext(accountId);
  } catch (error) {
    log.warn({ accountId, err: error }, 'waiting webhook could not be woken; it comes back after its delay');
  }
}

/** There is nothing to send, now or later. */
interface Unsendable {
  readonly fault: string;
}

/** Builds the request of this attempt. @returns null if that fails on our side for now */
async function prepare(
  { secrets, loadPayload, waiting, log }: DeliveryDependencies,
  bullJob: BullJob<WebhookDelivery>,
): Promise<{ readonly headers: Record<string, string>; readonly body: string } | Unsendable | null> {
  const delivery = bullJob.data;
  try {
    const [payload, signing] = await Promise.all([
      loadPayload(delivery),
      secrets.listSigning(delivery.accountId),
      waiting.leave(bullJob),
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

/** Reports the outcome of the attempt, and throws if it failed. */
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

/** Logs a failure to report and goes on: the receiver must not get the webhook again because of it. */
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

import type { Job as BullJob } from 'bullmq';
import { Webhook } from 'standardwebhooks';
import {
  deliveryIdOf,
  maxPayloadBytes,
  type LoadWebhookPayload,
  type WebhookDelivery,
} from '../../../shared/work/webhook-delivery.ts';
import type { WebhookSecretStore } from '../../../shared/work/webhook-secret-store.ts';
import { concludeAttempt, type ConcludeDeps, type Unsendable } from './conclude-attempt.ts';
import type { DeliveryLanes } from './delivery-lanes.ts';
import type { DeliveryTurns } from './delivery-turns.ts';
import type { ReceiverOutcome, ReceiverRecords, ReceiverStanding } from './receiver-records.ts';
import type { WaitingDeliveries } from './waiting-deliveries.ts';
import type { AttemptLimits, WebhookClient, WebhookResponse } from './webhook-client.ts';

export interface DeliveryDeps extends ConcludeDeps {
  readonly client: WebhookClient;
  readonly secrets: Pick<WebhookSecretStore, 'listSigning'>;
  readonly loadPayload: LoadWebhookPayload;
  readonly lanes: DeliveryLanes;
  readonly turns: DeliveryTurns;
  readonly receivers: ReceiverRecords;
  readonly waiting: WaitingDeliveries;
}

/** How long a delivery waits, if nothing wakes it, before it tries again to start an attempt. */
const placePauseMs = 60_000;
/**
 * Pause after a failure on our side, which does not count as an attempt. The delivery waits in the prompt lane, which has
 * no turns: free places of this process must not wake it.
 */
const internalFailurePauseMs = 10_000;
/** After a failure on our side, a delivery older than this fails. It is longer than all attempts would take. */
const maxAgeMs = 48 * 60 * 60 * 1_000;

/**
 * Processes a BullMQ job: makes one attempt, and resolves when the receiver has accepted the webhook.
 * @throws AttemptFailed if another attempt follows; DeliveryFailed if none does; DelayedError if the delivery was put
 * back on the queue without an attempt, or its attempt was ended to make room
 */
export async function deliverWebhook(
  dependencies: DeliveryDeps,
  bullJob: BullJob<WebhookDelivery>,
  token: string | undefined,
): Promise<void> {
  const { lanes, turns, receivers, log } = dependencies;
  const { accountId, jobId } = bullJob.data;
  const standing = await receivers.read(bullJob.data).catch((error: unknown) => {
    log.warn({ jobId, err: error }, 'preparing a webhook failed');
    return null;
  });
  if (standing === null) return await turns.putBack(bullJob, token, 'prompt', internalFailurePauseMs);
  const place = lanes.tryBegin(accountId, standing.lane);
  if (place === null) {
    try {
      return await turns.putBack(bullJob, token, standing.lane, placePauseMs);
    } finally {
      await turns.recheck(accountId, standing.lane);
    }
  }
  let isInternalFailure = false;
  let outcome: ReceiverOutcome | null = null;
  try {
    const prepared = await prepare(dependencies, bullJob);
    isInternalFailure = prepared === null;
    if (prepared === null) return await turns.putBack(bullJob, token, 'prompt', internalFailurePauseMs);
    if ('reason' in prepared) return await concludeAttempt(dependencies, bullJob, prepared);
    place.startClock();
    const limits = { limitMs: standing.limitMs, signal: place.signal };
    const attempt = await post(dependencies, bullJob.data, standing, prepared, limits);
    outcome = attempt.outcome;
    // Does not count as an attempt. Waits among those to hanging receivers, whose places are theirs only, so the next
    // one is not ended early.
    if (outcome === 'ended') return await turns.putBack(bullJob, token, 'hanging', placePauseMs);
    await concludeAttempt(dependencies, bullJob, attempt.response);
  } finally {
    place.end();
    // After a failure on our side, the next delivery would fail in the same way, so all waiting deliveries would be
    // woken and put back again and again.
    if (!isInternalFailure) await turns.wakeAfter(accountId, standing, outcome);
  }
}

interface PreparedRequest {
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** Sends the webhook, and records how its receiver responded. */
async function post(
  { client, lanes, receivers, log }: DeliveryDeps,
  delivery: WebhookDelivery,
  standing: ReceiverStanding,
  { headers, body }: PreparedRequest,
  limits: AttemptLimits,
): Promise<{ readonly response: WebhookResponse; readonly outcome: ReceiverOutcome }> {
  const startedAtMs = performance.now();
  const response = await client.post(delivery.url, headers, body, limits);
  const isPrompt = performance.now() - startedAtMs < Math.min(lanes.lateAfterMs, limits.limitMs);
  const failure = limits.signal.aborted ? 'ended' : 'timeout';
  const outcome = isPrompt ? 'prompt' : response.status === null ? failure : 'late';
  await receivers.write(delivery, standing, outcome).catch((error: unknown) => {
    log.debug({ jobId: delivery.jobId, err: error }, 'recording how a receiver responded failed');
  });
  return { response, outcome };
}

/**
 * Builds the request of this attempt.
 * @returns null after a failure on our side that may be temporary
 */
async function prepare(
  { secrets, loadPayload, waiting, log }: DeliveryDeps,
  bullJob: BullJob<WebhookDelivery>,
): Promise<PreparedRequest | Unsendable | null> {
  const delivery = bullJob.data;
  try {
    const [payload, signing] = await Promise.all([
      loadPayload(delivery),
      secrets.listSigning(delivery.accountId),
      waiting.remove(bullJob),
    ]);
    if (payload === null) return { reason: 'The job is no longer stored.' };
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

/** Returns the headers that Standard Webhooks requires, with one signature per secret. */
function signWebhook(
  deliveryId: string,
  body: string,
  secrets: readonly string[],
  at: Date,
): Record<string, string> {
  const signatures = secrets.map((secret) => new Webhook(secret).sign(deliveryId, at, body));
  return {
    'content-type': 'application/json',
    'webhook-id': deliveryId,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': signatures.join(' '),
  };
}

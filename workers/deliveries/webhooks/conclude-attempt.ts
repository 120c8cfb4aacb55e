import { UnrecoverableError, type Job as BullJob } from 'bullmq';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import type {
  WebhookDelivery,
  WebhookReporter,
  WebhookState,
} from '../../../shared/work/webhook-delivery.ts';
import { addJitter } from '../../outbound/backoff.ts';
import { removeUndelivered, webhookAttempts } from './webhook-queue.ts';
import type { WebhookResponse } from './webhook-client.ts';

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;

/**
 * Pauses after the first attempt, the second and so on: the first six of the schedule that Standard Webhooks
 * suggests.
 */
const pausesMs = [5 * secondMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 5 * hourMs, 10 * hourMs] as const;

/** A receiver may request a longer pause, up to this. */
const maxRetryAfterMs = hourMs;

export interface ConcludeDeps {
  readonly redis: RedisClient;
  readonly reporter: WebhookReporter;
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

/** The webhook can never be sent. */
export interface Unsendable {
  readonly reason: string;
}

/** Reports the outcome of the attempt, and throws if it failed. */
export async function concludeAttempt(
  dependencies: ConcludeDeps,
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
  { redis, reporter, log }: Pick<ConcludeDeps, 'redis' | 'reporter' | 'log'>,
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

/**
 * Returns how long to wait before the next attempt, in milliseconds.
 * @param attempts number of attempts so far
 * @param retryAfterMs the pause that the receiver requested, or null
 * @param random from 0 to 1
 */
export function computeRetryDelayMs(
  attempts: number,
  retryAfterMs: number | null,
  random: () => number = Math.random,
): number {
  const pauseMs = pausesMs[attempts - 1] ?? pausesMs.at(-1)!;
  const minMs = Math.max(pauseMs, Math.min(retryAfterMs ?? 0, maxRetryAfterMs));
  return addJitter(minMs, random());
}

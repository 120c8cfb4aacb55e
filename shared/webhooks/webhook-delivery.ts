/** A webhook tells one receiver once that a job has ended. A try to tell it is an attempt. */

export type WebhookEvent = 'job.succeeded' | 'job.failed' | 'job.cancelled';

/** What lies on the queue. The payload is not part of it: each attempt loads it. */
export interface WebhookDelivery {
  readonly v: 1;
  readonly jobId: string;
  readonly accountId: string;
  /** As `checkWebhookUrl` returned it. */
  readonly url: string;
  readonly event: WebhookEvent;
}

/** What is sent, as JSON of `maxPayloadBytes` at most. */
export interface WebhookPayload {
  readonly type: WebhookEvent;
  /** When the job ended, in ISO 8601. */
  readonly timestamp: string;
  /** The job without its response. */
  readonly data: object;
}

export const maxPayloadBytes = 20_000;

/** How far a delivery has come, as its job shows it. */
export interface WebhookState {
  readonly status: 'pending' | 'delivered' | 'failed';
  readonly attempts: number;
  /** Of the last response; null where there was none. */
  readonly lastStatus: number | null;
  /** Why the last attempt failed, in words for the account's owner; null where it did not. */
  readonly lastError: string | null;
  /** Null unless it is pending. */
  readonly nextAttemptAt: Date | null;
}

export interface WebhookReporter {
  /** Called after every attempt, and where a delivery ends without one. */
  report(delivery: WebhookDelivery, state: WebhookState): Promise<void>;
}

/** @returns null where the job is no longer kept: its webhook is given up */
export type LoadWebhookPayload = (delivery: WebhookDelivery) => Promise<WebhookPayload | null>;

/**
 * The `webhook-id`, by which a receiver recognises a repeated attempt. It is signed as a part of a text that dots
 * separate, so it has none itself.
 */
export function deliveryIdOf({ jobId, event }: Pick<WebhookDelivery, 'jobId' | 'event'>): string {
  return `msg_${jobId}_${event.slice('job.'.length)}`;
}

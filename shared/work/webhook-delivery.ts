export type JobEvent = 'job.started' | 'job.succeeded' | 'job.failed' | 'job.cancelled';
export type BatchEvent = 'batch.completed' | 'batch.failed' | 'batch.expired' | 'batch.cancelled';
export type WebhookEvent = JobEvent | BatchEvent;

export const webhookQueueName = 'webhook';

/** A queue item: where to announce the start or the end of a job, or the end of a batch. Each attempt loads the payload again. */
export interface WebhookDelivery {
  readonly v: 1;
  /** Of the job or the batch. */
  readonly jobId: string;
  readonly accountId: string;
  /** As returned by `checkWebhookUrl`. */
  readonly url: string;
  readonly event: WebhookEvent;
}

/** The body of a webhook, at most `maxPayloadBytes` as JSON. */
export type WebhookPayload = JobPayload | BatchPayload;

export interface JobPayload {
  readonly type: WebhookEvent;
  /** When the job started or ended, in ISO 8601. */
  readonly timestamp: string;
  /** The job without its response. */
  readonly data: object;
}

/** As OpenAI's webhooks of batches. */
export interface BatchPayload {
  readonly id: string;
  readonly object: 'event';
  /** When the batch ended, in Unix seconds. */
  readonly created_at: number;
  readonly type: WebhookEvent;
  readonly data: { readonly id: string };
}

export const maxPayloadBytes = 20_000;

/** The state of a delivery, as shown in its job. */
export interface WebhookState {
  readonly status: 'pending' | 'delivered' | 'failed';
  readonly attempts: number;
  /** HTTP status of the last response; null if there was none. */
  readonly lastStatus: number | null;
  /** Why the last attempt failed, worded for the account's owner; null if it succeeded. */
  readonly lastError: string | null;
  /** Null unless the delivery is pending. */
  readonly nextAttemptAt: Date | null;
}

export interface WebhookReporter {
  /** Called after every attempt, and when a delivery ends without one. */
  report(delivery: WebhookDelivery, state: WebhookState): Promise<void>;
}

/** @returns null if the job is no longer stored; its webhook then fails */
export type LoadWebhookPayload = (delivery: WebhookDelivery) => Promise<WebhookPayload | null>;

/**
 * Returns the `webhook-id`, by which receivers recognise a repeated attempt. It must not contain a dot, because dots
 * separate the parts of the signed text.
 */
export function deliveryIdOf({ jobId, event }: Pick<WebhookDelivery, 'jobId' | 'event'>): string {
  return `msg_${jobId}_${event.slice(event.indexOf('.') + 1)}`;
}

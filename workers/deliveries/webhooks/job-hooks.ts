import type { DueHook } from '../../../shared/work/jobs/end-job-scripts.ts';
import { findTransition, type JobRecord } from '../../../shared/work/jobs/job-record.ts';
import { JobStore } from '../../../shared/work/jobs/job-store.ts';
import { noEstimate, presentJob } from '../../../shared/work/jobs/present-job.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import type {
  WebhookDelivery,
  WebhookEvent,
  WebhookPayload,
  WebhookReporter,
  WebhookState,
} from '../../../shared/work/webhook-delivery.ts';
import type { WebhookQueue } from './webhook-queue.ts';

/** Queues the webhooks of durable jobs, builds their payloads, and records the outcome of those of their ends. */
export class JobHooks implements WebhookReporter {
  readonly #jobs: JobStore;
  readonly #queue: WebhookQueue;

  constructor(redis: RedisClient, queue: WebhookQueue) {
    this.#jobs = new JobStore(redis);
    this.#queue = queue;
  }

  /** @throws AppError `service_unavailable` while Redis is unavailable */
  async queue({ accountId, jobId, url, event }: DueHook): Promise<void> {
    const delivery: WebhookDelivery = { v: 1, jobId, accountId, url, event };
    if (await this.#queue.add(delivery)) return;
    await this.report(delivery, tooManyUndelivered);
  }

  /** Returns null if the job has been deleted. */
  async loadPayload({ accountId, jobId, event }: WebhookDelivery): Promise<WebhookPayload | null> {
    const foundJob = await this.#jobs.find(accountId, jobId);
    if (foundJob === null) return null;
    const { job } = foundJob;
    const timestamp = new Date(timeOf(job, event)).toISOString();
    return { type: event, timestamp, data: presentJob(job, noEstimate, job.webhook?.publicUrl ?? '') };
  }

  /** A job shows only the webhook of its end. */
  async report({ accountId, jobId, event }: WebhookDelivery, state: WebhookState): Promise<void> {
    if (event === 'job.started') return;
    await this.#jobs.recordWebhook(accountId, jobId, JSON.stringify(state));
  }
}

const timeOf = (job: JobRecord, event: WebhookEvent): number =>
  (event === 'job.started'
    ? findTransition(job, 'active')
    : findTransition(job, 'succeeded', 'failed', 'cancelled')) ?? 0;

export const tooManyUndelivered: WebhookState = {
  status: 'failed',
  attempts: 0,
  lastStatus: null,
  lastError: 'Too many webhooks of this account are undelivered. Make their receivers respond with 2xx.',
  nextAttemptAt: null,
};

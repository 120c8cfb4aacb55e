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

/** Queues the webhooks of durable jobs, builds their payloads, and records their outcome on the job. */
export class JobHooks implements WebhookReporter {
  readonly #jobs: JobStore;
  readonly #queue: WebhookQueue;

  constructor(redis: RedisClient, queue: WebhookQueue) {
    this.#jobs = new JobStore(redis);
    this.#queue = queue;
  }

  /** @throws AppError `service_unavailable` while Redis is unavailable */
  async queue({ accountId, jobId, url, status }: DueHook): Promise<void> {
    const event = `job.${status}` as WebhookEvent;
    const delivery: WebhookDelivery = { v: 1, jobId, accountId, url, event };
    if (await this.#queue.add(delivery)) return;
    await this.report(delivery, tooManyUndelivered);
  }

  /** Returns null if the job has been deleted. */
  async loadPayload({ accountId, jobId, event }: WebhookDelivery): Promise<WebhookPayload | null> {
    const foundJob = await this.#jobs.find(accountId, jobId);
    if (foundJob === null) return null;
    const timestamp = new Date(endOf(foundJob.job)).toISOString();
    return { type: event, timestamp, data: presentJob(foundJob.job, noEstimate) };
  }

  async report({ accountId, jobId }: WebhookDelivery, state: WebhookState): Promise<void> {
    await this.#jobs.recordWebhook(accountId, jobId, JSON.stringify(state));
  }
}

const endOf = (job: JobRecord): number => findTransition(job, 'succeeded', 'failed', 'cancelled') ?? 0;

const tooManyUndelivered: WebhookState = {
  status: 'failed',
  attempts: 0,
  lastStatus: null,
  lastError: 'Too many webhooks of this account are undelivered. Make their receivers respond with 2xx.',
  nextAttemptAt: null,
};

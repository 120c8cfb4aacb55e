import type { RedisClient } from '../platform/redis/redis-client.ts';
import { findTransition, type JobRecord } from '../work/jobs/job-record.ts';
import type { QueueName } from '../work/queue/job-kinds.ts';
import { readJobs } from './jobs.ts';
import type { ListPlace } from './list-place.ts';

/** A job that failed, with its place in the list. */
export interface FailedJob {
  readonly place: ListPlace;
  readonly job: JobRecord;
}

/**
 * Yields a queue's jobs that failed within the last day, latest first. Memory does not grow with their number. Jobs
 * that fail or are retried during the read do not affect the others.
 */
export async function* readFailedJobs(
  redis: RedisClient,
  queue: QueueName,
  after: ListPlace | null = null,
): AsyncGenerator<FailedJob> {
  for await (const { place, record } of readJobs(redis, { accountId: null, status: 'failed', queue }, after))
    if (record?.job.status === 'failed') yield { place, job: record.job };
}

/** Yields durable jobs that failed within the last day, latest first. */
export async function* listFailedJobs(redis: RedisClient, queue: QueueName): AsyncGenerator<object> {
  for await (const { job } of readFailedJobs(redis, queue)) yield describe(job);
}

const describe = (job: JobRecord): object => ({
  id: job.id,
  account: job.accountId,
  model: job.model,
  code: job.error?.code ?? null,
  message: job.error?.message ?? null,
  attempts: job.attempts,
  ended_at: new Date(findTransition(job, 'failed') ?? 0).toISOString(),
});

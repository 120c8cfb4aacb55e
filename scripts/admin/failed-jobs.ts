import { findTransition, type JobRecord } from '../../shared/work/jobs/job-record.ts';
import { JobStore } from '../../shared/work/jobs/job-store.ts';
import type { QueueName } from '../../shared/work/queue/job-kinds.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../../shared/platform/redis/redis-keys.ts';
import { readLatestMembers } from '../../shared/admin/latest-members.ts';

/**
 * Yields a queue's jobs that failed within the last day, latest first. Memory does not grow with their number. Jobs
 * that fail or are retried during the read do not affect the others.
 */
export async function* readFailedJobs(redis: RedisClient, queue: QueueName): AsyncGenerator<JobRecord> {
  const store = new JobStore(redis);
  const lists = Array.from({ length: shardCount }, (_, shard) => ({
    key: redisKeys.jobFailures(shard, queue),
    accountId: null,
  }));
  for await (const page of readLatestMembers(redis, lists)) {
    const found = await Promise.all(page.map(({ accountId, id }) => store.find(accountId, id)));
    for (const one of found) if (one !== null) yield one.job;
  }
}

/** Yields durable jobs that failed within the last day, latest first. */
export async function* listFailedJobs(redis: RedisClient, queue: QueueName): AsyncGenerator<object> {
  for await (const job of readFailedJobs(redis, queue)) yield describe(job);
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

import type { JobRecord } from '../../shared/work/jobs/job-record.ts';
import { JobStore } from '../../shared/work/jobs/job-store.ts';
import type { QueueName } from '../../shared/work/queue/job-kinds.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../../shared/platform/redis/redis-keys.ts';
import { readLatestMembers } from './latest-members.ts';

/**
 * Yields a queue's jobs that failed within the last day, latest first. Memory does not grow with their number. Jobs
 * that fail or are retried during the read do not affect the others.
 */
export async function* readFailedJobs(redis: RedisClient, queue: QueueName): AsyncGenerator<JobRecord> {
  const store = new JobStore(redis);
  const keys = Array.from({ length: shardCount }, (_, shard) => redisKeys.jobFailures(shard, queue));
  for await (const page of readLatestMembers(redis, keys)) {
    const found = await Promise.all(page.map(({ accountId, id }) => store.find(accountId, id)));
    for (const one of found) if (one !== null) yield one.job;
  }
}

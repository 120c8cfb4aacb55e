import { JobStore } from '../../shared/work/jobs/job-store.ts';
import type { JobRecord } from '../../shared/work/jobs/job-record.ts';
import { redisKeys, shardCount } from '../../shared/platform/redis/redis-keys.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';

/** Reads the state of durable jobs directly from Redis. */

const pageSize = 500;

/** The number of unfinished jobs of these accounts. */
export async function countOpenJobs(redis: RedisClient, accountIds: readonly string[]): Promise<number> {
  const lists = accountIds.flatMap((id) => ['q', 'a'].map((status) => redisKeys.jobsList(id, status)));
  const counts = await Promise.all(lists.map((list) => redis.zcard(list)));
  return counts.reduce((sum, count) => sum + count, 0);
}

export async function listAllJobs(redis: RedisClient, accountId: string): Promise<JobRecord[]> {
  const store = new JobStore(redis);
  const jobs: JobRecord[] = [];
  for (let page = 1; ; page++) {
    const { total, jobs: found } = await store.list(accountId, null, { page, pageSize });
    jobs.push(...found.map(({ job }) => job));
    if (page * pageSize >= total) return jobs;
  }
}

/**
 * Descriptions of the quotas that an account's jobs still hold; empty once all have ended. Bytes of job records are
 * ignored, because records are stored for a day.
 */
export async function describeJobHolds(redis: RedisClient, accountId: string): Promise<string[]> {
  const held = await redis.hgetall(redisKeys.jobsHeld(accountId));
  return Object.entries(held)
    .filter(([name, value]) => name !== 'bytes' && value !== '0')
    .map(([name, value]) => `${accountId} holds ${name} ${value}`);
}

/** Expires the leases of all workers on their jobs, as happens ten seconds after the workers have died. */
export async function expireJobLeases(redis: RedisClient): Promise<void> {
  for (let shard = 0; shard < shardCount; shard++) {
    const key = redisKeys.jobLeases(shard);
    for (const member of await redis.zrange(key, '0', '-1')) await redis.zadd(key, 1, member);
  }
}

/** Expires the leases of all workers on their slices of batches, as happens ten seconds after the workers have died. */
export async function expireSliceLeases(redis: RedisClient): Promise<void> {
  for (let shard = 0; shard < shardCount; shard++) {
    const key = redisKeys.batchLeases(shard);
    for (const member of await redis.zrange(key, '0', '-1')) await redis.zadd(key, 1, member);
  }
}

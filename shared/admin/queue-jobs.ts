import { cancelJob, listWaitingLists } from '../work/jobs/end-job-scripts.ts';
import { JobTurns } from '../work/jobs/job-turns-store.ts';
import type { QueueName } from '../work/queue/job-kinds.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../platform/redis/redis-keys.ts';

/** Number of jobs read in one step. */
const pageSize = 500;

/**
 * Cancels and refunds all waiting durable jobs of a queue.
 * @returns how many there were
 */
export async function drainJobs(redis: RedisClient, queue: QueueName): Promise<number> {
  const turns = new JobTurns(redis);
  let drained = 0;
  for (let shard = 0; shard < shardCount; shard++) {
    for await (const lists of listWaitingLists(redis, shard)) {
      for (const list of lists.filter((one) => one.queue === queue)) {
        const key = redisKeys.jobsWaiting(list.accountId, queue, list.model);
        for (let ids = await redis.zrevrange(key, 0, pageSize - 1); ids.length > 0;) {
          const done = await Promise.all(ids.map((id) => cancelJob(redis, list.accountId, id)));
          const ended = done.filter(({ outcome }) => outcome === 'cancelled').length;
          await Promise.all(Array.from({ length: ended }, () => turns.drop(list, list.accountId)));
          drained += ended;
          if (ended === 0) break;
          ids = await redis.zrevrange(key, 0, pageSize - 1);
        }
      }
    }
  }
  return drained;
}

/** Counts a queue's durable jobs that failed within the last day. */
export async function countFailedJobs(redis: RedisClient, queue: QueueName): Promise<number> {
  const shards = Array.from({ length: shardCount }, (_, shard) => shard);
  const failed = await Promise.all(shards.map((shard) => redis.zcard(redisKeys.jobFailures(shard, queue))));
  return failed.reduce((total, count) => total + count, 0);
}

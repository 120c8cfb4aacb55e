import type { QueueName } from '../work/queue/job-kinds.ts';
import { LuaScript } from '../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../platform/redis/redis-keys.ts';

const script = new LuaScript(new URL('./retry-job.lua', import.meta.url), [
  'prefix',
  'accountId',
  'id',
  'newId',
  'isDryRun',
]);

export type RetryOutcome =
  /** The new request holds the reservation until it is placed or released. */
  | 'ok'
  | 'not_failed'
  | 'retried'
  /** The job failed after output that was charged. */
  | 'charged'
  /** The caller has sent the request again under its Idempotency-Key. */
  | 'sent_again'
  /** The body is no longer stored: it was large, the account has too many failed jobs, or a retry would not help. */
  | 'not_kept'
  /** The account is not loaded into Redis. */
  | 'unknown'
  | 'banned'
  /** The account's key has expired. */
  | 'expired'
  /** The account may not use the model any more. */
  | 'model_refused'
  | 'insufficient'
  | 'over_budget';

/** Removes the failed job from the account's list of failed jobs, once the new request is a job. */
export async function markRetried(
  redis: RedisClient,
  job: { readonly accountId: string; readonly id: string; readonly queue: QueueName },
): Promise<void> {
  const key = redisKeys.jobFailures(shardOf(job.accountId), job.queue);
  await callRedis(() => redis.zrem(key, `${job.accountId} ${job.id}`));
}

/**
 * Reserves the amount that a failed job had reserved, for a new request that repeats the job's work.
 * @param isDryRun whether to reply only what would become of it
 */
export async function reserveRetry(
  redis: RedisClient,
  job: { readonly accountId: string; readonly id: string },
  newId: string,
  isDryRun = false,
): Promise<RetryOutcome> {
  const { accountId, id } = job;
  const values = {
    prefix: redisKeys.jobsOf(shardOf(accountId)),
    accountId,
    id,
    newId,
    isDryRun: isDryRun ? 1 : 0,
  };
  return (await callRedis(() => script.run(redis, values))) as RetryOutcome;
}

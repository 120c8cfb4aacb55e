import type { QueueName } from '../queue/job-kinds.ts';
import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import { clockFunctions } from './job-lua.ts';

/**
 * Reserves the amount that a failed job had reserved, for a new request that repeats the job's work. A new request is
 * needed because the failed job already has its row in the log, and its id is never charged again. A job can be retried
 * once; its retry can be retried too.
 */
const script = new RedisScript(`${clockFunctions}
local p, account, id, newId = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local record, hot = p .. 'job:' .. account .. ':' .. id, p .. 'account:' .. account
local r = redis.call('HMGET', record, 'st', 'was', 'rt', 'cost')
if r[1] ~= 'f' then return 'not_failed' end
-- Ignore an earlier retry that never became a job.
if r[3] and (redis.call('EXISTS', p .. 'job:' .. account .. ':' .. r[3]) == 1
  or redis.call('HEXISTS', p .. 'reservations', r[3]) == 1) then return 'retried' end
if r[4] and r[4] ~= '0' then return 'charged' end
if not r[2] or redis.call('EXISTS', p .. 'job-body:' .. account .. ':' .. id) == 0 then return 'not_kept' end
local a = redis.call('HMGET', hot, 'bal', 'res', 'free', 'fres', 'ban')
if not a[1] then return 'unknown' end
if a[5] == '1' then return 'banned' end
local cost, isFree, maxCharge = string.match(r[2], '^(%d+) (%d) %d+ ?(<?%d*)')
local claimHash = string.match(r[2], '<%d+ (%S+)')
if claimHash and redis.call('EXISTS', p .. 'claim:' .. account .. ':' .. claimHash) == 1 then return 'sent_again' end
if isFree == '1' then
  if tonumber(a[3]) <= tonumber(a[4]) then return 'insufficient' end
  redis.call('HINCRBY', hot, 'fres', 1)
else
  if tonumber(a[1]) - tonumber(a[2]) < tonumber(cost) then return 'insufficient' end
  redis.call('HINCRBY', hot, 'res', cost)
end
redis.call('HSET', p .. 'reservations', newId, account .. ' ' .. cost .. ' ' .. isFree .. ' ' .. whole(nowMs()) .. ' ' .. maxCharge)
redis.call('HSET', record, 'rt', newId)
return 'ok'
`);

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
  | 'insufficient';

/** Removes the failed job from the account's list of failed jobs, once the new request is a job. */
export async function markRetried(
  redis: RedisClient,
  job: { readonly accountId: string; readonly id: string; readonly queue: QueueName },
): Promise<void> {
  const key = redisKeys.jobFailures(shardOf(job.accountId), job.queue);
  await callRedis(() => redis.zrem(key, `${job.accountId} ${job.id}`));
}

export async function reserveRetry(
  redis: RedisClient,
  job: { readonly accountId: string; readonly id: string },
  newId: string,
): Promise<RetryOutcome> {
  const keys = [redisKeys.jobsOf(shardOf(job.accountId))];
  const args = [job.accountId, job.id, newId];
  return (await callRedis(() => script.run(redis, keys, args))) as RetryOutcome;
}

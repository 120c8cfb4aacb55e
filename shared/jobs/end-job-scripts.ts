import type { QueueName } from '../queue/job-kinds.ts';
import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import { jobFunctions } from './job-lua.ts';
import type { JobStatus } from '../contract/job-terms.ts';
import { statusOf } from './job-record.ts';
import { jobLeaseMs, deadlineMissedMessage } from './run-job-scripts.ts';

/** If this many workers die while running a job, the job is considered the cause. */
export const maxDeaths = 3;
/**
 * Maximum attempts of a job. If a worker freezes and recovers, its expired lease does not count as a death, but a job
 * that freezes every worker must still end.
 */
const maxAttempts = 30;

/** Maximum number of due items per script execution, so that it stays short. */
const maxPerScript = 64;

const cancelled = 'The job was cancelled before it started, and nothing was charged.';
const lost = 'The work failed repeatedly and was given up: its worker died each time. Nothing was charged.';
const lostCancelled = 'The job was cancelled. Its worker died before it could end it; nothing was charged.';

/** Ends a waiting job. If a worker has the job, records the cancellation request and returns the worker's id. */
const cancelScript = new RedisScript(`${jobFunctions}
local p, account, id = KEYS[1], ARGV[1], ARGV[2]
local record = p .. 'job:' .. account .. ':' .. id
local r = redis.call('HMGET', record, 'st', 'w', 'q', 'm')
if not r[1] then return {'unknown'} end
if r[1] ~= 'q' and r[1] ~= 'a' then return {'ended'} end
if r[2] then
  redis.call('HSET', record, 'cx', '1')
  return {'requested', r[2]}
end
endWithoutCharge(p, account, id, 'c', nowMs(), 'job_cancelled', ARGV[3])
return {'cancelled', r[3], r[4]}
`);

/** Finds jobs whose workers went silent. Each is requeued at its old position, or ends if this happened too often. */
const recoverLostScript = new RedisScript(`${jobFunctions}
local p, now = KEYS[1], nowMs()
local requeued, ended = {}, 0
-- Shorten leases written before the clock stepped back. Otherwise no worker would count as lost until the clock has
-- caught up.
local maxUntilMs = now + ${jobLeaseMs}
for _, member in ipairs(redis.call('ZRANGE', p .. 'job-leases', '(' .. whole(maxUntilMs), '+inf', 'BYSCORE', 'LIMIT', 0, ${maxPerScript})) do
  redis.call('ZADD', p .. 'job-leases', maxUntilMs, member)
end
for _, member in ipairs(redis.call('ZRANGE', p .. 'job-leases', '-inf', now, 'BYSCORE', 'LIMIT', 0, ${maxPerScript})) do
  local account, id = string.match(member, '^(%S+) (%S+)$')
  local record = p .. 'job:' .. account .. ':' .. id
  local r = redis.call('HMGET', record, 'st', 'n', 'q', 'm', 'cx')
  redis.call('ZREM', p .. 'job-leases', member)
  if r[1] == 'q' or r[1] == 'a' then
    if r[5] == '1' then
      endWithoutCharge(p, account, id, 'c', now, 'job_cancelled', ARGV[1])
      ended = ended + 1
    elseif recordDeath(record, r[2]) >= ${maxDeaths} or tonumber(r[2]) >= ${maxAttempts} then
      endWithoutCharge(p, account, id, 'f', now, 'upstream_error', ARGV[2])
      ended = ended + 1
    else
      requeued[#requeued + 1] = {account, id, r[3], r[4], requeue(p, account, id, now)}
    end
  end
end
return {requeued, ended}
`);

/** Ends jobs that did not start in time. */
const expireScript = new RedisScript(`${jobFunctions}
local p, now = KEYS[1], nowMs()
local late = redis.call('ZRANGE', p .. 'job-deadlines', '-inf', now, 'BYSCORE', 'LIMIT', 0, ${maxPerScript})
local lists = {}
for _, member in ipairs(late) do
  local account, id = string.match(member, '^(%S+) (%S+)$')
  redis.call('ZREM', p .. 'job-deadlines', member)
  local r = redis.call('HMGET', p .. 'job:' .. account .. ':' .. id, 'st', 'q', 'm')
  if r[1] == 'q' then
    endWithoutCharge(p, account, id, 'f', now, 'deadline_exceeded', ARGV[1])
    lists[#lists + 1] = {account, r[2], r[3]}
  end
end
return {#late, lists}
`);

/**
 * Returns each account's lists of waiting jobs, one per queue and model, with the number of jobs and the account's
 * weight. `JobTurns.sync` repairs its index from them.
 */
const listsScript = new RedisScript(`
local p = KEYS[1]
local scan = redis.call('SSCAN', p .. 'job-lines', ARGV[1], 'COUNT', 100)
local lists = {}
for _, list in ipairs(scan[2]) do
  local account, queue, model = string.match(list, '^(%S+) (%S+) (.+)$')
  local waiting = redis.call('ZCARD', p .. 'jobs-waiting:' .. account .. ':' .. queue .. ':' .. model)
  if waiting == 0 then redis.call('SREM', p .. 'job-lines', list) end
  lists[#lists + 1] = {account, queue, model, waiting, redis.call('HGET', p .. 'account:' .. account, 'wgt') or '1'}
end
return {scan[1], lists}
`);

/** Finds ended jobs whose webhooks must be queued. */
const hooksScript = new RedisScript(`${jobFunctions}
local p = KEYS[1]
local due = {}
for _, member in ipairs(redis.call('ZRANGE', p .. 'job-hooks', 0, ${maxPerScript - 1})) do
  local account, id = string.match(member, '^(%S+) (%S+)$')
  local r = redis.call('HMGET', p .. 'job:' .. account .. ':' .. id, 'url', 'st')
  if r[1] then due[#due + 1] = {account, id, r[1], r[2]}
  else redis.call('ZREM', p .. 'job-hooks', member) end
end
return due
`);

/** Deletes jobs that ended a day ago. */
const deleteEndedScript = new RedisScript(`${jobFunctions}
local p, now = KEYS[1], nowMs()
local old = redis.call('ZRANGE', p .. 'jobs-ended', '-inf', now, 'BYSCORE', 'LIMIT', 0, ${maxPerScript})
for _, member in ipairs(old) do
  local account, id = string.match(member, '^(%S+) (%S+)$')
  redis.call('ZREM', p .. 'jobs-ended', member)
  local record = p .. 'job:' .. account .. ':' .. id
  local r = redis.call('HMGET', record, 'q', 'url')
  if r[1] then
    dropBody(p, account, id)
    changeBytes(p, account, -recordBytes(r[2] or ''))
  end
  for _, queue in ipairs({'chat', 'image', 'embedding'}) do redis.call('ZREM', p .. 'job-failures:' .. queue, member) end
  redis.call('UNLINK', record)
  for _, list in ipairs({'all', 's', 'f', 'c'}) do redis.call('ZREM', p .. 'jobs:' .. account .. ':' .. list, id) end
end
return #old
`);

export type Cancellation =
  | { readonly outcome: 'unknown' | 'ended' }
  | { readonly outcome: 'cancelled'; readonly queue: QueueName; readonly model: string }
  /** The worker that has the job must be notified. */
  | { readonly outcome: 'requested'; readonly workerId: string };

const prefixOf = (shard: number): string => redisKeys.jobsOf(shard);

export async function cancelJob(redis: RedisClient, accountId: string, id: string): Promise<Cancellation> {
  const keys = [prefixOf(shardOf(accountId))];
  const reply = await callRedis(() => cancelScript.run(redis, keys, [accountId, id, cancelled]));
  const [outcome, first, second] = reply as [Cancellation['outcome'], string?, string?];
  if (outcome === 'requested') return { outcome, workerId: first! };
  if (outcome === 'cancelled') return { outcome, queue: first as QueueName, model: second! };
  return { outcome };
}

/** A job that waits again after its worker was lost. */
export interface LostJob {
  readonly accountId: string;
  readonly id: string;
  readonly queue: QueueName;
  readonly model: string;
  readonly weight: number;
}

/**
 * Requeues or ends jobs whose workers went silent.
 * @returns the requeued jobs, and how many jobs ended
 */
export async function recoverLostJobs(
  redis: RedisClient,
  shard: number,
): Promise<{ readonly requeued: readonly LostJob[]; readonly ended: number }> {
  const reply = await callRedis(() => recoverLostScript.run(redis, [prefixOf(shard)], [lostCancelled, lost]));
  const [requeued, ended] = reply as [[string, string, QueueName, string, string][], number];
  return {
    requeued: requeued.map(([accountId, id, queue, model, weight]) => ({
      accountId,
      id,
      queue,
      model,
      weight: Number(weight),
    })),
    ended,
  };
}

/** Identifies a list of waiting jobs: those of one account for one model. */
export interface AccountJobList {
  readonly accountId: string;
  readonly queue: QueueName;
  readonly model: string;
}

/**
 * Ends jobs that did not start in time.
 * @returns whether there may be more, and for each ended job the list that it waited in
 */
export async function expireJobs(
  redis: RedisClient,
  shard: number,
): Promise<{ readonly isMore: boolean; readonly expired: readonly AccountJobList[] }> {
  const reply = await callRedis(() => expireScript.run(redis, [prefixOf(shard)], [deadlineMissedMessage]));
  const [checked, lists] = reply as [number, [string, QueueName, string][]];
  return {
    isMore: checked === maxPerScript,
    expired: lists.map(([accountId, queue, model]) => ({ accountId, queue, model })),
  };
}

/**
 * Deletes jobs that ended a day ago.
 * @returns whether there may be more
 */
export async function deleteEndedJobs(redis: RedisClient, shard: number): Promise<boolean> {
  return (await callRedis(() => deleteEndedScript.run(redis, [prefixOf(shard)], []))) === maxPerScript;
}

/** A list of waiting jobs with its current length. */
export interface WaitingList extends AccountJobList {
  readonly waiting: number;
  readonly weight: number;
}

/** Yields all lists of a shard that have waiting jobs, a batch at a time. */
export async function* listWaitingLists(redis: RedisClient, shard: number): AsyncGenerator<WaitingList[]> {
  let cursor = '0';
  do {
    const at = cursor;
    const reply = await callRedis(() => listsScript.run(redis, [prefixOf(shard)], [at]));
    const [next, lists] = reply as [string, [string, QueueName, string, number, string][]];
    cursor = next;
    yield lists.map(([accountId, queue, model, waiting, weight]) => ({
      accountId,
      queue,
      model,
      waiting,
      weight: Number(weight),
    }));
  } while (cursor !== '0');
}

/** An ended job whose webhook must be queued. */
export interface DueHook {
  readonly accountId: string;
  readonly jobId: string;
  readonly url: string;
  readonly status: JobStatus;
}

export async function findDueHooks(redis: RedisClient, shard: number): Promise<DueHook[]> {
  const reply = await callRedis(() => hooksScript.run(redis, [prefixOf(shard)], []));
  return (reply as [string, string, string, string][]).map(([accountId, jobId, url, letter]) => ({
    accountId,
    jobId,
    url,
    status: statusOf(letter),
  }));
}

/** Records that the job's webhook has been queued. */
export async function markHookQueued(redis: RedisClient, { accountId, jobId }: DueHook): Promise<void> {
  await callRedis(() => redis.zrem(redisKeys.jobHooks(shardOf(accountId)), `${accountId} ${jobId}`));
}

import type { QueueName } from '../queue/job-kinds.ts';
import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import { jobFunctions } from './job-lua.ts';
import { tooLate } from './run-job-scripts.ts';

/** As many workers may die under a job; then it is taken for the cause. */
export const maxAttempts = 3;

/** Of what is due, looked at in one run: a run stays short. */
const atOnce = 64;

const cancelled = 'The job was cancelled before it started, and nothing was charged.';
const lost = 'The work failed repeatedly and was given up: its worker died each time. Nothing was charged.';
const lostCancelled = 'The job was cancelled. Its worker died before it could end it; nothing was charged.';

/** Ends a job that waits; of one that a worker has it notes that it is to end, and says which worker. */
const cancelScript = new RedisScript(`${jobFunctions}
local p, account, id = KEYS[1], ARGV[1], ARGV[2]
local record = p .. 'job:' .. account .. ':' .. id
local r = redis.call('HMGET', record, 'st', 'w', 'q', 'm')
if not r[1] then return {'unknown'} end
if r[1] ~= 'q' and r[1] ~= 'a' then return {'ended'} end
if r[2] then
  redis.call('HSET', record, 'cx', '1')
  return {'asked', r[2]}
end
endWithoutCharge(p, account, id, 'c', nowMs(), 'job_cancelled', ARGV[3])
return {'cancelled', r[3], r[4]}
`);

/** Jobs whose workers went silent: each waits again at its old place, or ends where that happened too often. */
const loseScript = new RedisScript(`${jobFunctions}
local p, now = KEYS[1], nowMs()
local again, ended = {}, 0
for _, member in ipairs(redis.call('ZRANGE', p .. 'job-leases', '-inf', now, 'BYSCORE', 'LIMIT', 0, ${atOnce})) do
  local account, id = string.match(member, '^(%S+) (%S+)$')
  local record = p .. 'job:' .. account .. ':' .. id
  local r = redis.call('HMGET', record, 'st', 'n', 'at', 'q', 'm', 'cx')
  redis.call('ZREM', p .. 'job-leases', member)
  if r[1] == 'q' or r[1] == 'a' then
    if r[6] == '1' then
      endWithoutCharge(p, account, id, 'c', now, 'job_cancelled', ARGV[1])
      ended = ended + 1
    elseif tonumber(r[2]) >= ${maxAttempts} then
      endWithoutCharge(p, account, id, 'f', now, 'upstream_error', ARGV[2])
      ended = ended + 1
    else
      if r[1] == 'a' then changeStatus(p, account, id, record, 'a', 'q', r[3], now) end
      redis.call('HDEL', record, 'w')
      redis.call('ZADD', p .. 'jobs-waiting:' .. account .. ':' .. r[4] .. ':' .. r[5], r[3], id)
      redis.call('HINCRBY', p .. 'job-totals', r[4], 1)
      again[#again + 1] = {account, id, r[4], r[5], redis.call('HGET', p .. 'account:' .. account, 'wgt') or '1'}
    end
  end
end
return {again, ended}
`);

/** Jobs that did not start in time. */
const expireScript = new RedisScript(`${jobFunctions}
local p, now = KEYS[1], nowMs()
local late = redis.call('ZRANGE', p .. 'job-deadlines', '-inf', now, 'BYSCORE', 'LIMIT', 0, ${atOnce})
local lines = {}
for _, member in ipairs(late) do
  local account, id = string.match(member, '^(%S+) (%S+)$')
  redis.call('ZREM', p .. 'job-deadlines', member)
  local r = redis.call('HMGET', p .. 'job:' .. account .. ':' .. id, 'st', 'n', 'q', 'm')
  if r[1] == 'q' and tonumber(r[2]) <= 1 then
    endWithoutCharge(p, account, id, 'f', now, 'deadline_exceeded', ARGV[1])
    lines[#lines + 1] = {account, r[3], r[4]}
  end
end
return {#late, lines}
`);

/** Jobs that ended a day ago. */
const forgetScript = new RedisScript(`${jobFunctions}
local p, now = KEYS[1], nowMs()
local old = redis.call('ZRANGE', p .. 'jobs-ended', '-inf', now, 'BYSCORE', 'LIMIT', 0, ${atOnce})
for _, member in ipairs(old) do
  local account, id = string.match(member, '^(%S+) (%S+)$')
  redis.call('ZREM', p .. 'jobs-ended', member)
  redis.call('UNLINK', p .. 'job:' .. account .. ':' .. id, p .. 'job-body:' .. account .. ':' .. id)
  for _, list in ipairs({'all', 's', 'f', 'c'}) do redis.call('ZREM', p .. 'jobs:' .. account .. ':' .. list, id) end
end
return #old
`);

export type Cancellation =
  | { readonly outcome: 'unknown' | 'ended' }
  | { readonly outcome: 'cancelled'; readonly queue: QueueName; readonly model: string }
  /** The worker that has it is to be told. */
  | { readonly outcome: 'asked'; readonly workerId: string };

const prefixOf = (shard: number): string => redisKeys.jobsOf(shard);

export async function cancelJob(redis: RedisClient, accountId: string, id: string): Promise<Cancellation> {
  const keys = [prefixOf(shardOf(accountId))];
  const answer = await callRedis(() => cancelScript.run(redis, keys, [accountId, id, cancelled]));
  const [outcome, first, second] = answer as [Cancellation['outcome'], string?, string?];
  if (outcome === 'asked') return { outcome, workerId: first! };
  if (outcome === 'cancelled') return { outcome, queue: first as QueueName, model: second! };
  return { outcome };
}

/** A job that waits again. */
export interface LostJob {
  readonly accountId: string;
  readonly id: string;
  readonly queue: QueueName;
  readonly model: string;
  readonly weight: number;
}

/** @returns those that wait again, and how many ended */
export async function loseJobs(
  redis: RedisClient,
  shard: number,
): Promise<{ readonly again: readonly LostJob[]; readonly ended: number }> {
  const answer = await callRedis(() => loseScript.run(redis, [prefixOf(shard)], [lostCancelled, lost]));
  const [again, ended] = answer as [[string, string, QueueName, string, string][], number];
  return {
    again: again.map(([accountId, id, queue, model, weight]) => ({
      accountId,
      id,
      queue,
      model,
      weight: Number(weight),
    })),
    ended,
  };
}

/** A line that lost one of its waiting jobs. */
export interface LeftLine {
  readonly accountId: string;
  readonly queue: QueueName;
  readonly model: string;
}

/** @returns whether there may be more */
export async function expireJobs(
  redis: RedisClient,
  shard: number,
): Promise<{ readonly isMore: boolean; readonly left: readonly LeftLine[] }> {
  const answer = await callRedis(() => expireScript.run(redis, [prefixOf(shard)], [tooLate]));
  const [looked, lines] = answer as [number, [string, QueueName, string][]];
  return {
    isMore: looked === atOnce,
    left: lines.map(([accountId, queue, model]) => ({ accountId, queue, model })),
  };
}

/** @returns whether there may be more */
export async function forgetJobs(redis: RedisClient, shard: number): Promise<boolean> {
  return (await callRedis(() => forgetScript.run(redis, [prefixOf(shard)], []))) === atOnce;
}

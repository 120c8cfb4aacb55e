import { ledgerStreamBound } from '../billing/admit-script.ts';
import type { ErrorCode } from '../contract/error-kinds.ts';
import type { QueueName } from '../queue/job-kinds.ts';
import { maxInlineBytes } from '../queue/payload-limits.ts';
import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import { jobFunctions } from './job-lua.ts';
import { restartWindowMs } from './job-record.ts';

/** A worker loses its job if it does not renew the lease for this long. */
export const jobLeaseMs = 10_000;
export const renewIntervalMs = 2_500;

/** Error message for a job that missed its deadline, shown to its caller. */
export const deadlineMissedMessage = 'The job could not start before its deadline, and nothing was charged.';

/**
 * Takes the account's next job of one model. Ends jobs whose deadline has passed or whose account is banned. The job
 * stays queued until its worker has a call slot at a vendor.
 */
const takeScript = new RedisScript(`${jobFunctions}
local p, account, queue, model, worker = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local waiting = p .. 'jobs-waiting:' .. account .. ':' .. queue .. ':' .. model
local now = nowMs()
local isBanned = redis.call('HGET', p .. 'account:' .. account, 'ban') == '1'
local taken = {}
-- The ledger's stream is full because MongoDB is unavailable. Jobs would add to it, so they wait.
if redis.call('XLEN', p .. 'ledger') >= ${ledgerStreamBound} then return {redis.call('ZCARD', waiting), taken} end
for _ = 1, 16 do
  local id = redis.call('ZRANGE', waiting, 0, 0)[1]
  if not id then break end
  local record = p .. 'job:' .. account .. ':' .. id
  local r = redis.call('HMGET', record, 'dl', 'n', 'bytes', 'hold')
  if not r[1] then
    removeFromWaitingList(p, account, id, queue, model)
  elseif isBanned then
    endWithoutCharge(p, account, id, 'f', now, 'account_banned', ARGV[7])
  elseif tonumber(r[1]) < now then
    endWithoutCharge(p, account, id, 'f', now, 'deadline_exceeded', ARGV[6])
  else
    local attempt = tonumber(r[2]) + 1
    removeFromWaitingList(p, account, id, queue, model)
    redis.call('HSET', record, 'n', attempt, 'w', worker)
    redis.call('ZADD', p .. 'job-leases', now + ${jobLeaseMs}, account .. ' ' .. id)
    local body = tonumber(r[3]) <= ${maxInlineBytes} and redis.call('GET', p .. 'job-body:' .. account .. ':' .. id) or ''
    taken = {id, attempt, body or '', tonumber(r[3]), string.match(r[4] or '', '^%d+ (%d)') or '0'}
    break
  end
end
return {redis.call('ZCARD', waiting), taken}
`);

/** Marks a job as running once its worker has a call slot, unless the job has ended or another worker has it. */
const startScript = new RedisScript(`${jobFunctions}
local p, account, id, attempt = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local record = p .. 'job:' .. account .. ':' .. id
if not isHeldBy(record, attempt) then return 'gone' end
local r = redis.call('HMGET', record, 'st', 'at', 'dl', 'cx')
if r[4] == '1' then return 'cancelled' end
local now = nowMs()
if r[1] == 'a' then return 'ok' end
if tonumber(r[3]) < now then
  endWithoutCharge(p, account, id, 'f', now, 'deadline_exceeded', ARGV[4])
  return 'late'
end
changeStatus(p, account, id, record, 'q', 'a', r[2], now)
redis.call('HSET', record, 'dl', whole(now + ${restartWindowMs}))
redis.call('ZREM', p .. 'job-deadlines', account .. ' ' .. id)
-- The body is needed for as long as the job may start again.
redis.call('EXPIRE', p .. 'job-body:' .. account .. ':' .. id, ${2 * (restartWindowMs / 1_000)}, 'GT')
return 'ok'
`);

/**
 * Renews the leases of taken jobs. Returns the jobs that the worker must stop: cancelled, ended or taken by another
 * worker.
 */
const renewScript = new RedisScript(`${jobFunctions}
local p, untilMs = KEYS[1], nowMs() + ${jobLeaseMs}
local stop = {}
for i = 1, #ARGV, 3 do
  local account, id, attempt = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local record = p .. 'job:' .. account .. ':' .. id
  if not isHeldBy(record, attempt) then
    undoDeath(record, attempt)
    stop[#stop + 1] = {id, 'gone'}
  else
    if redis.call('HGET', record, 'cx') == '1' then stop[#stop + 1] = {id, 'cancelled'} end
    redis.call('ZADD', p .. 'job-leases', untilMs, account .. ' ' .. id)
  end
end
return stop
`);

/** Returns a taken job to its old position when its worker stops or cannot run it. */
const handBackScript = new RedisScript(`${jobFunctions}
local p, account, id, attempt = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local record = p .. 'job:' .. account .. ':' .. id
if not isHeldBy(record, attempt) then return 'gone' end
if redis.call('HGET', record, 'cx') == '1' then return 'cancelled' end
return tonumber(requeue(p, account, id, nowMs()))
`);

/** Ends a job that cannot run at all, or was cancelled before it could. */
const failScript = new RedisScript(`${jobFunctions}
local p, account, id, attempt = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
if not isHeldBy(p .. 'job:' .. account .. ':' .. id, attempt) then return 0 end
endWithoutCharge(p, account, id, ARGV[4] == 'job_cancelled' and 'c' or 'f', nowMs(), ARGV[4], ARGV[5])
return 1
`);

const progressScript = new RedisScript(`
local record = KEYS[1]
if redis.call('HGET', record, 'n') ~= ARGV[1] or redis.call('HGET', record, 'st') ~= 'a' then return 0 end
local before = tonumber(redis.call('HGET', record, 'pg') or '0')
if tonumber(ARGV[2]) > before then redis.call('HSET', record, 'pg', ARGV[2]) end
return 1
`);

/** A job as seen by the worker that took it. */
export interface TakenJob {
  readonly id: string;
  readonly accountId: string;
  /** How many workers have taken it, including this one. */
  readonly attempt: number;
  /** JSON. Null if the body is large or gone; the worker must then read it separately. */
  readonly body: Buffer | null;
  readonly bytes: number;
  /** Whether the job reserves a free request instead of money. */
  readonly free: boolean;
}

export interface TakeResult {
  /** Jobs of the account and model that still wait. */
  readonly left: number;
  /** Null if there was none to run. */
  readonly job: TakenJob | null;
}

const banned = 'The account was banned before the job could start, and nothing was charged.';

const prefixOf = (accountId: string): string => redisKeys.jobsOf(shardOf(accountId));

/**
 * Takes the account's next job for a model.
 * @throws AppError `service_unavailable` while Redis is unavailable
 */
export async function takeJob(
  redis: RedisClient,
  line: { readonly queue: QueueName; readonly model: string },
  accountId: string,
  workerId: string,
): Promise<TakeResult> {
  const args = [accountId, line.queue, line.model, workerId, '', deadlineMissedMessage, banned];
  const reply = await callRedis(() => takeScript.run(redis, [prefixOf(accountId)], args));
  const [left, taken] = reply as [number, [string, number, string, number, string] | []];
  if (taken.length === 0) return { left, job: null };
  const [id, attempt, body, bytes, free] = taken;
  const inline = body === '' ? null : Buffer.from(body);
  return { left, job: { id, accountId, attempt, body: inline, bytes, free: free === '1' } };
}

/** Identifies one attempt of a job. */
export interface JobAttempt {
  readonly id: string;
  readonly accountId: string;
  readonly attempt: number;
}

/**
 * Marks a taken job as running.
 * @returns `gone` if another worker has the job or it has ended; `late` if its deadline has passed, which ends it
 */
export async function startJob(
  redis: RedisClient,
  { accountId, id, attempt }: JobAttempt,
): Promise<'ok' | 'gone' | 'late' | 'cancelled'> {
  const args = [accountId, id, attempt, deadlineMissedMessage];
  const reply = await callRedis(() => startScript.run(redis, [prefixOf(accountId)], args));
  return reply as 'ok' | 'gone' | 'late' | 'cancelled';
}

/**
 * Renews the leases of taken jobs.
 * @returns the ids of the jobs that must stop, and why
 */
export async function renewJobs(
  redis: RedisClient,
  attempts: readonly JobAttempt[],
): Promise<ReadonlyMap<string, 'gone' | 'cancelled'>> {
  const byShard = new Map<string, JobAttempt[]>();
  for (const run of attempts) {
    const prefix = prefixOf(run.accountId);
    const ofShard = byShard.get(prefix);
    if (ofShard === undefined) byShard.set(prefix, [run]);
    else ofShard.push(run);
  }
  const replies = await Promise.allSettled(
    Array.from(byShard, ([prefix, ofShard]) => {
      const args = ofShard.flatMap(({ accountId, id, attempt }) => [accountId, id, attempt]);
      return callRedis(() => renewScript.run(redis, [prefix], args));
    }),
  );
  // On a Cluster, one shard's node may be down. The other replies are still valid.
  const results = replies.flatMap((reply) => (reply.status === 'fulfilled' ? [reply.value] : []));
  const failed = replies.find((reply) => reply.status === 'rejected');
  if (results.length === 0 && failed !== undefined) throw failed.reason;
  return new Map(results.flatMap((reply) => reply as [string, 'gone' | 'cancelled'][]));
}

/**
 * Returns a taken job to its list of waiting jobs.
 * @returns the account's weight, which `JobTurns.add` needs; `gone` if another worker has the job or it has ended. If
 * `cancelled`, this worker must end the job: the caller pays for calls already made to a model, and only this worker
 * knows about them.
 */
export async function handBackJob(
  redis: RedisClient,
  { accountId, id, attempt }: JobAttempt,
): Promise<number | 'gone' | 'cancelled'> {
  const args = [accountId, id, attempt];
  const reply = await callRedis(() => handBackScript.run(redis, [prefixOf(accountId)], args));
  return reply as number | 'gone' | 'cancelled';
}

/** Ends a job that cannot run. The caller is not charged. */
export async function failJob(
  redis: RedisClient,
  { accountId, id, attempt }: JobAttempt,
  { code, message }: { readonly code: ErrorCode; readonly message: string },
): Promise<void> {
  const args = [accountId, id, attempt, code, message];
  await callRedis(() => failScript.run(redis, [prefixOf(accountId)], args));
}

/** @param progress from 0 to 1; never decreases */
export async function recordProgress(redis: RedisClient, run: JobAttempt, progress: number): Promise<void> {
  const key = redisKeys.job(run.accountId, run.id);
  await callRedis(() => progressScript.run(redis, [key], [run.attempt, progress]));
}

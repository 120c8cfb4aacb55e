import { AppError } from '../contract/errors.ts';
import { maxInlineBytes } from '../queue/payload-limits.ts';
import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import { jobFunctions } from './job-lua.ts';
import { restartWindowMs, describeNewJob, type NewJobFields } from './job-record.ts';
import type { FoundJob } from './job-store.ts';

/** Limit of waiting and running jobs per account, if its entry does not set one. */
const defaultMaxQueued = 10_000;
/** Per account, including jobs that ended within the last day. */
const maxJobsPerAccount = 200_000;
/** Bodies of jobs that have not ended or may be retried, plus the records of all jobs. */
const maxBytesPerAccount = 512_000_000;
const maxBytesPerShard = 2_000_000_000;
const maxWaitingPerShard = 500_000;

/** How much longer than its job's deadline a body is stored, so that the job can run again. */
const bodySlackSeconds = restartWindowMs / 1_000;
/** How long a claim outlives its job's deadline. A started job may take days if its workers die or are stopped. */
const claimSlackSeconds = 7 * 24 * 60 * 60;
/** Lifetime of a body until its job is placed. Placing the job follows immediately and extends the lifetime. */
const unplacedBodySeconds = 60;

/**
 * Turns an admitted request into a durable job, atomically: its reservation becomes the job's, and the job starts to
 * wait. From then on only the job ends the reservation.
 *
 * The job's times are from Redis's clock, which all readers use. The job's creation time is the time at which its
 * request was admitted, as recorded in the reservation. Its timeout starts then.
 */
const script = new RedisScript(`${jobFunctions}
local p, reservations = KEYS[1], KEYS[2]
local body, lifetime = ARGV[10], ARGV[11]
local account, id, queue, model, operation = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local timeoutMs, bytes, format, url = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], ARGV[9]
local record = p .. 'job:' .. account .. ':' .. id

local limits = redis.call('HMGET', p .. 'account:' .. account, 'mqj', 'wgt')
local weight = tonumber(limits[2] or '1')
local held = p .. 'jobs-held:' .. account
local lists = p .. 'jobs:' .. account .. ':'
local unfinished = redis.call('ZCARD', lists .. 'q') + redis.call('ZCARD', lists .. 'a')
if unfinished >= tonumber(limits[1] or '${defaultMaxQueued}') then return {'too_many_jobs', unfinished} end
if redis.call('ZCARD', lists .. 'all') >= ${maxJobsPerAccount} then return {'too_many_kept', ${maxJobsPerAccount}} end
local storedBytes = bytes + recordBytes(url)
if tonumber(redis.call('HGET', held, 'bytes') or '0') + storedBytes > ${maxBytesPerAccount} then
  return {'too_many_bytes', ${maxBytesPerAccount / 1e6}}
end
local totals = redis.call('HMGET', p .. 'job-totals', queue, 'bytes')
if tonumber(totals[1] or '0') >= ${maxWaitingPerShard} or tonumber(totals[2] or '0') + storedBytes > ${maxBytesPerShard} then
  return {'queue_full'}
end
local reservation = redis.call('HGET', reservations, id)
if not reservation then return {'gone'} end

local hold = string.match(reservation, '^%S+ (.*)$')
local cost, isFree, at = string.match(hold, '^(%d+) (%d) (%d+)')
local deadline = whole(tonumber(at) + timeoutMs)
local bodyKey = p .. 'job-body:' .. account .. ':' .. id
if body ~= '' then redis.call('SET', bodyKey, body, 'EX', lifetime)
elseif redis.call('EXPIRE', bodyKey, lifetime) == 0 then return {'gone'} end
redis.call('HDEL', reservations, id)
changeReserved(p, account, cost, isFree, 1)
changeBytes(p, account, storedBytes)
-- Keep the claim of the Idempotency-Key for as long as the job may take. Ending the job then keeps or deletes it.
local claim = claimOf(p, account, id, hold)
if claim then redis.call('EXPIRE', claim, lifetime + ${claimSlackSeconds}) end
redis.call('HSET', record, 'st', 'q', 'op', operation, 'q', queue, 'm', model, 'at', at, 'dl', deadline,
  'n', 0, 'hold', hold, 'bytes', bytes, 'log', 'q' .. at)
if format ~= '' then redis.call('HSET', record, 'fm', format) end
if url ~= '' then redis.call('HSET', record, 'url', url) end
redis.call('ZADD', lists .. 'q', at, id)
redis.call('ZADD', lists .. 'all', at, id)
addToWaitingList(p, account, id, queue, model, at)
redis.call('ZADD', p .. 'job-deadlines', deadline, account .. ' ' .. id)
local rank = redis.call('ZRANK', p .. 'jobs-waiting:' .. account .. ':' .. queue .. ':' .. model, id)
return {'ok', weight, rank, at, deadline, nowMs()}
`);

export interface NewJob extends NewJobFields {
  /** The data for the worker, as JSON. */
  readonly body: Buffer;
}

/** A new job, with the weight of its account and its rank among the account's waiting jobs. */
export interface PlacedJob extends FoundJob {
  readonly weight: number;
  readonly rank: number;
}

/**
 * Turns an admitted request into a durable job.
 * @throws AppError `too_many_jobs`, `queue_full`, `service_unavailable`; the request then keeps its reservation
 */
export async function placeJob(redis: RedisClient, payloads: RedisClient, job: NewJob): Promise<PlacedJob> {
  const { id, accountId, body } = job;
  const shard = shardOf(accountId);
  const bodyKey = redisKeys.jobBody(accountId, id);
  const lifetime = Math.ceil(job.timeoutMs / 1_000) + bodySlackSeconds;
  // Store the body first, so that every job that can be found has its body.
  if (body.length > maxInlineBytes)
    await callRedis(() => payloads.set(bodyKey, body, 'EX', unplacedBodySeconds));
  const reply = await callRedis(() =>
    script.run(
      redis,
      [redisKeys.jobsOf(shard), redisKeys.reservations(shard)],
      [
        accountId,
        id,
        job.queue,
        job.model,
        job.operation,
        job.timeoutMs,
        body.length,
        job.format ?? '',
        job.webhookUrl ?? '',
        body.length > maxInlineBytes ? '' : body,
        lifetime,
      ],
    ),
  );
  const [outcome, number = 0, ...placed] = reply as [string, number?, number?, string?, string?, number?];
  if (outcome === 'ok') {
    const [rank = 0, createdAt, deadlineAt, nowMs = 0] = placed;
    const created = describeNewJob(job, Number(createdAt), Number(deadlineAt));
    return { job: created, weight: number, rank, nowMs };
  }
  // Best effort: the body also expires.
  if (body.length > maxInlineBytes) payloads.unlink(bodyKey).catch(() => undefined);
  throw toError(outcome, number);
}

const retryAfterSeconds = 30;

function toError(outcome: string, limit: number): AppError {
  const headers = { 'retry-after': String(retryAfterSeconds) };
  switch (outcome) {
    case 'too_many_jobs':
      return new AppError('too_many_jobs', {
        message:
          limit === 0
            ? 'This account may not create jobs. Send the request without "Prefer: respond-async", or ask the operator.'
            : `This account has ${limit} jobs that have not ended, and may not have more. Wait for some of them to end.`,
        headers,
      });
    case 'too_many_kept':
      return new AppError('too_many_jobs', {
        message: `This account created ${limit} jobs within the last day, which is its limit. Send fewer, larger ones.`,
        headers,
      });
    case 'too_many_bytes':
      return new AppError('too_many_jobs', {
        message: `The jobs of this account that have not ended hold ${limit} MB, which is the limit. Wait for some of them to end.`,
        headers,
      });
    case 'queue_full':
      return new AppError('queue_full', { headers });
    default:
      return new AppError('service_unavailable', {
        message: 'The request took too long to be put on its queue. Send it again.',
        headers,
      });
  }
}

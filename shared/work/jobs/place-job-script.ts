import { AppError } from '../../contract/errors.ts';
import { maxInlineBytes } from '../queue/payload-limits.ts';
import { LuaScript } from '../../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../platform/redis/redis-keys.ts';
import { jobConstants } from './job-constants.ts';
import {
  defaultWebhookEvents,
  describeNewJob,
  restartWindowMs,
  writeWebhookEvents,
  type NewJobFields,
} from './job-record.ts';
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

const script = new LuaScript(
  new URL('./place-job.lua', import.meta.url),
  [
    'prefix',
    'reservations',
    'accountId',
    'id',
    'queue',
    'model',
    'operation',
    'timeoutMs',
    'bytes',
    'format',
    'url',
    'body',
    'lifetime',
    'cancelAfterMs',
    'events',
    'publicUrl',
  ],
  {
    constants: {
      ...jobConstants,
      claimSlackSeconds,
      defaultMaxQueued,
      maxBytesPerAccount,
      maxBytesPerShard,
      maxJobsPerAccount,
      maxWaitingPerShard,
    },
  },
);

type PlaceReply =
  | [outcome: 'ok', weight: number, rank: number, createdAtMs: string, deadlineAtMs: string, nowMs: number]
  | [outcome: 'too_many_jobs', unfinishedJobs: number]
  | [outcome: 'too_many_kept']
  | [outcome: 'too_many_bytes']
  | [outcome: 'queue_full']
  | [outcome: 'gone'];

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
  const reply = (await callRedis(() =>
    script.run(redis, {
      prefix: redisKeys.jobsOf(shard),
      reservations: redisKeys.reservations(shard),
      accountId,
      id,
      queue: job.queue,
      model: job.model,
      operation: job.operation,
      timeoutMs: job.timeoutMs,
      bytes: body.length,
      format: job.format ?? '',
      url: job.webhookUrl ?? '',
      body: body.length > maxInlineBytes ? '' : body,
      lifetime,
      cancelAfterMs: job.cancelAfterMs ?? '',
      events: writeWebhookEvents(job.webhookEvents ?? defaultWebhookEvents),
      publicUrl: job.publicUrl ?? '',
    }),
  )) as PlaceReply;
  if (reply[0] === 'ok') {
    const [, weight, rank, createdAt, deadlineAt, nowMs] = reply;
    const created = describeNewJob(job, Number(createdAt), Number(deadlineAt));
    return { job: created, weight, rank, nowMs };
  }
  // Best effort: the body also expires.
  if (body.length > maxInlineBytes) payloads.unlink(bodyKey).catch(() => undefined);
  throw toError(reply);
}

const retryAfterSeconds = 30;

function toError(reply: Exclude<PlaceReply, ['ok', ...unknown[]]>): AppError {
  const headers = { 'retry-after': String(retryAfterSeconds) };
  switch (reply[0]) {
    case 'too_many_jobs':
      return new AppError('too_many_jobs', {
        message:
          reply[1] === 0
            ? 'This account cannot create jobs. Send the request without "Prefer: respond-async", or contact support.'
            : `This account has ${reply[1]} unfinished jobs and cannot have more. Wait for some of them to finish.`,
        headers,
      });
    case 'too_many_kept':
      return new AppError('too_many_jobs', {
        message: `This account has created ${maxJobsPerAccount} jobs within the last day, which is its limit. Create fewer, larger jobs.`,
        headers,
      });
    case 'too_many_bytes':
      return new AppError('too_many_jobs', {
        message: `The unfinished jobs of this account take up ${maxBytesPerAccount / 1e6} MB, which is the limit. Wait for some of them to finish.`,
        headers,
      });
    case 'queue_full':
      return new AppError('queue_full', { headers });
    case 'gone':
      return new AppError('service_unavailable', {
        message: 'The request could not be queued in time. Send it again.',
        headers,
      });
    default:
      return reply satisfies never;
  }
}

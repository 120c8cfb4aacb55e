import { ledgerStreamBound } from '../../money/admit-script.ts';
import type { ErrorCode } from '../../contract/error-kinds.ts';
import type { QueueName } from '../queue/job-kinds.ts';
import { LuaScript } from '../../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../platform/redis/redis-keys.ts';
import { jobConstants } from './job-constants.ts';
import { restartWindowMs } from './job-record.ts';
import { liveness } from '../../platform/redis/liveness.ts';

/** Error message for a job that missed its deadline, shown to its caller. */
export const deadlineMissedMessage = 'The job could not start before its deadline, and nothing was charged.';

/** Error message for a job that did not start before its caller no longer wanted it. */
export const overdueMessage =
  'The job had not started when the time of its Cancel-After was over. It was cancelled, and nothing was charged.';

const attemptNames = ['prefix', 'accountId', 'id', 'attempt'] as const;

const takeScript = new LuaScript(
  new URL('./take-job.lua', import.meta.url),
  ['prefix', 'accountId', 'queue', 'model', 'workerId', 'deadlineMessage', 'bannedMessage', 'overdueMessage'],
  { constants: { ...jobConstants, jobLeaseMs: liveness.job.deadMs, ledgerStreamBound } },
);
const startScript = new LuaScript(
  new URL('./start-job.lua', import.meta.url),
  [...attemptNames, 'deadlineMessage'],
  { constants: { ...jobConstants, restartWindowMs } },
);
const renewScript = new LuaScript(new URL('./renew-jobs.lua', import.meta.url), ['prefix'], {
  itemNames: ['accountId', 'id', 'attempt'],
  constants: { ...jobConstants, jobLeaseMs: liveness.job.deadMs },
});
const handBackScript = new LuaScript(new URL('./hand-back-job.lua', import.meta.url), attemptNames, {
  constants: jobConstants,
});
const failScript = new LuaScript(
  new URL('./fail-job.lua', import.meta.url),
  [...attemptNames, 'status', 'code', 'message'],
  { constants: jobConstants },
);
const progressScript = new LuaScript(new URL('./record-progress.lua', import.meta.url), [
  'record',
  'attempt',
  'progress',
]);

type TakeReply =
  | [left: number]
  | [
      left: number,
      id: string,
      attempt: number,
      body: string,
      bytes: number,
      isFree: '0' | '1',
      cancelInMs: number | '',
    ];
type StartReply = 'ok' | 'gone' | 'late' | 'cancelled' | 'overdue';

/** Why a worker must stop a job: see renew-jobs.lua. */
export type StopReason = 'gone' | 'cancelled' | 'overdue';

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
  /** Milliseconds from when it was taken until it is cancelled. Null for never. */
  readonly cancelInMs: number | null;
}

export interface TakeResult {
  /** Jobs of the account and model that still wait. */
  readonly left: number;
  /** Null if there was none to run. */
  readonly job: TakenJob | null;
}

const banned = 'The account was banned before the job could start, and nothing was charged.';

const prefixOf = (accountId: string): string => redisKeys.jobsOf(shardOf(accountId));

/** Returns the keys and arguments that identify an attempt. */
const valuesOf = ({ accountId, id, attempt }: JobAttempt) => ({
  prefix: prefixOf(accountId),
  accountId,
  id,
  attempt,
});

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
  const values = {
    prefix: prefixOf(accountId),
    accountId,
    queue: line.queue,
    model: line.model,
    workerId,
    deadlineMessage: deadlineMissedMessage,
    bannedMessage: banned,
    overdueMessage,
  };
  const reply = (await callRedis(() => takeScript.run(redis, values))) as TakeReply;
  if (reply.length === 1) return { left: reply[0], job: null };
  const [left, id, attempt, body, bytes, isFree, cancelIn] = reply;
  const inline = body === '' ? null : Buffer.from(body);
  const cancelInMs = cancelIn === '' ? null : cancelIn;
  return { left, job: { id, accountId, attempt, body: inline, bytes, free: isFree === '1', cancelInMs } };
}

/** Identifies one attempt of a job. */
export interface JobAttempt {
  readonly id: string;
  readonly accountId: string;
  readonly attempt: number;
}

/**
 * Marks a taken job as running.
 * @returns `gone` if another worker has the job or it has ended; `late` if its deadline has passed, which ends it;
 * `cancelled` or `overdue` if this worker must end it
 */
export async function startJob(redis: RedisClient, run: JobAttempt): Promise<StartReply> {
  const values = { ...valuesOf(run), deadlineMessage: deadlineMissedMessage };
  return (await callRedis(() => startScript.run(redis, values))) as StartReply;
}

/**
 * Renews the leases of taken jobs.
 * @returns the ids of the jobs that must stop, and why
 */
export async function renewJobs(
  redis: RedisClient,
  attempts: readonly JobAttempt[],
): Promise<ReadonlyMap<string, StopReason>> {
  const byShard = new Map<string, JobAttempt[]>();
  for (const run of attempts) {
    const prefix = prefixOf(run.accountId);
    const ofShard = byShard.get(prefix);
    if (ofShard === undefined) byShard.set(prefix, [run]);
    else ofShard.push(run);
  }
  const replies = await Promise.allSettled(
    Array.from(byShard, ([prefix, ofShard]) => {
      const items = ofShard.map(({ accountId, id, attempt }) => ({ accountId, id, attempt }));
      return callRedis(() => renewScript.run(redis, { prefix }, items));
    }),
  );
  // On a Cluster, one shard's node may be down. The other replies are still valid.
  const results = replies.flatMap((reply) => (reply.status === 'fulfilled' ? [reply.value] : []));
  const failed = replies.find((reply) => reply.status === 'rejected');
  if (results.length === 0 && failed !== undefined) throw failed.reason;
  return new Map(results.flatMap((reply) => reply as [string, StopReason][]));
}

/**
 * Returns a taken job to its list of waiting jobs.
 * @returns the account's weight, which `JobTurns.add` needs; `gone` if another worker has the job or it has ended. If
 * `cancelled`, this worker must end the job: the caller pays for calls already made to a model, and only this worker
 * knows about them.
 */
export async function handBackJob(
  redis: RedisClient,
  run: JobAttempt,
): Promise<number | 'gone' | 'cancelled'> {
  const reply = await callRedis(() => handBackScript.run(redis, valuesOf(run)));
  return reply as number | 'gone' | 'cancelled';
}

/** Ends a job that cannot run. The caller is not charged. */
export async function failJob(
  redis: RedisClient,
  run: JobAttempt,
  { code, message }: { readonly code: ErrorCode; readonly message: string },
): Promise<void> {
  const status = code === 'job_cancelled' ? 'c' : 'f';
  await callRedis(() => failScript.run(redis, { ...valuesOf(run), status, code, message }));
}

/** @param progress from 0 to 1; never decreases */
export async function recordProgress(redis: RedisClient, run: JobAttempt, progress: number): Promise<void> {
  const record = redisKeys.job(run.accountId, run.id);
  await callRedis(() => progressScript.run(redis, { record, attempt: run.attempt, progress }));
}

import type { QueueName } from '../queue/job-kinds.ts';
import { LuaScript } from '../../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../platform/redis/redis-keys.ts';
import type { BatchQueueName, TurnQueue } from './job-line.ts';
import { jobConstants } from './job-constants.ts';
import { statusOf } from './job-record.ts';
import { deadlineMissedMessage, overdueMessage } from './run-job-scripts.ts';
import { liveness } from '../../platform/redis/liveness.ts';
import type { JobEvent } from '../webhook-delivery.ts';

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
const lost = 'The job failed because its worker crashed on every attempt. Nothing was charged.';
const lostCancelled =
  'The job was cancelled, but its worker crashed before stopping it. Nothing was charged.';

const cancelScript = new LuaScript(
  new URL('./cancel-job.lua', import.meta.url),
  ['prefix', 'accountId', 'id', 'message'],
  { constants: jobConstants },
);
const recoverLostScript = new LuaScript(
  new URL('./recover-lost-jobs.lua', import.meta.url),
  ['prefix', 'cancelledMessage', 'lostMessage'],
  { constants: { ...jobConstants, jobLeaseMs: liveness.job.deadMs, maxAttempts, maxDeaths, maxPerScript } },
);
const expireScript = new LuaScript(
  new URL('./expire-jobs.lua', import.meta.url),
  ['prefix', 'deadlineMessage'],
  { constants: { ...jobConstants, maxPerScript } },
);
const cancelOverdueScript = new LuaScript(
  new URL('./cancel-overdue-jobs.lua', import.meta.url),
  ['prefix', 'overdueMessage'],
  { constants: { ...jobConstants, maxPerScript } },
);
const limitCancelTimesScript = new LuaScript(new URL('./limit-cancel-times.lua', import.meta.url), [
  'prefix',
  'cursor',
]);
const dueTasksScript = new LuaScript(new URL('./find-due-tasks.lua', import.meta.url), ['prefix'], {
  constants: { jobLeaseMs: liveness.job.deadMs },
});
const scanListsScript = new LuaScript(new URL('./scan-waiting-lists.lua', import.meta.url), [
  'prefix',
  'cursor',
  'setName',
  'listName',
]);
const hooksScript = new LuaScript(new URL('./find-due-hooks.lua', import.meta.url), ['prefix'], {
  constants: { maxPerScript },
});
const deleteEndedScript = new LuaScript(new URL('./delete-ended-jobs.lua', import.meta.url), ['prefix'], {
  constants: { ...jobConstants, maxPerScript },
});

type CancelReply =
  | [outcome: 'cancelled', queue: QueueName, model: string]
  | [outcome: 'requested', workerId: string]
  | [outcome: 'ended' | 'unknown'];

export type Cancellation =
  | { readonly outcome: 'unknown' | 'ended' }
  | { readonly outcome: 'cancelled'; readonly queue: QueueName; readonly model: string }
  /** The worker that has the job must be notified. */
  | { readonly outcome: 'requested'; readonly workerId: string };

const prefixOf = (shard: number): string => redisKeys.jobsOf(shard);

export async function cancelJob(redis: RedisClient, accountId: string, id: string): Promise<Cancellation> {
  const values = { prefix: prefixOf(shardOf(accountId)), accountId, id, message: cancelled };
  const reply = (await callRedis(() => cancelScript.run(redis, values))) as CancelReply;
  switch (reply[0]) {
    case 'cancelled':
      return { outcome: reply[0], queue: reply[1], model: reply[2] };
    case 'requested':
      return { outcome: reply[0], workerId: reply[1] };
    case 'ended':
    case 'unknown':
      return { outcome: reply[0] };
    default:
      return reply satisfies never;
  }
}

/** What a worker does for the jobs of a shard, besides running them. */
export type JobTask =
  | 'expire'
  | 'cancel'
  | 'recover'
  | 'queueHooks'
  | 'delete'
  | 'recoverSlices'
  | 'wakeBatches'
  | 'queueBatchHooks'
  | 'deleteBatches';

/** Returns the tasks that have something to do. */
export async function findDueTasks(redis: RedisClient, shard: number): Promise<ReadonlySet<JobTask>> {
  const reply = await callRedis(() => dueTasksScript.run(redis, { prefix: prefixOf(shard) }));
  return new Set(reply as JobTask[]);
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
  const values = { prefix: prefixOf(shard), cancelledMessage: lostCancelled, lostMessage: lost };
  const reply = await callRedis(() => recoverLostScript.run(redis, values));
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
  const values = { prefix: prefixOf(shard), deadlineMessage: deadlineMissedMessage };
  const reply = await callRedis(() => expireScript.run(redis, values));
  const [checked, lists] = reply as [number, [string, QueueName, string][]];
  return {
    isMore: checked === maxPerScript,
    expired: lists.map(([accountId, queue, model]) => ({ accountId, queue, model })),
  };
}

/** A job that its worker must end. */
export interface CancelledRun {
  readonly workerId: string;
  readonly jobId: string;
}

/**
 * Cancels jobs whose time to be cancelled has passed.
 * @returns whether there may be more, for each ended job the list that it waited in, and those that workers have
 */
export async function cancelOverdueJobs(
  redis: RedisClient,
  shard: number,
): Promise<{
  readonly isMore: boolean;
  readonly ended: readonly AccountJobList[];
  readonly running: readonly CancelledRun[];
}> {
  const values = { prefix: prefixOf(shard), overdueMessage };
  const reply = await callRedis(() => cancelOverdueScript.run(redis, values));
  const [checked, lists, workers] = reply as [number, [string, QueueName, string][], [string, string][]];
  return {
    isMore: checked === maxPerScript,
    ended: lists.map(([accountId, queue, model]) => ({ accountId, queue, model })),
    running: workers.map(([workerId, jobId]) => ({ workerId, jobId })),
  };
}

/** Corrects the times at which a shard's jobs are cancelled, after Redis's clock has stepped. */
export async function limitCancelTimes(redis: RedisClient, shard: number): Promise<void> {
  let cursor = '0';
  do {
    const values = { prefix: prefixOf(shard), cursor };
    cursor = (await callRedis(() => limitCancelTimesScript.run(redis, values))) as string;
  } while (cursor !== '0');
}

/**
 * Deletes jobs that ended a day ago.
 * @returns whether there may be more
 */
export async function deleteEndedJobs(redis: RedisClient, shard: number): Promise<boolean> {
  return (await callRedis(() => deleteEndedScript.run(redis, { prefix: prefixOf(shard) }))) === maxPerScript;
}

/** A list of waiting jobs or batches with its current length. */
export interface WaitingList<Q extends TurnQueue = QueueName> {
  readonly accountId: string;
  readonly queue: Q;
  readonly model: string;
  readonly waiting: number;
  readonly weight: number;
}

/** Yields all lists of a shard that have waiting jobs, some at a time. */
export const listWaitingLists = (redis: RedisClient, shard: number): AsyncGenerator<WaitingList[]> =>
  scanLists(redis, shard, { setName: 'job-lines', listName: 'jobs-waiting:' });

/** Yields all lists of a shard with batches that have lines which no worker has, some at a time. */
export const listWaitingBatches = (
  redis: RedisClient,
  shard: number,
): AsyncGenerator<WaitingList<BatchQueueName>[]> =>
  scanLists(redis, shard, { setName: 'batch-lines', listName: 'batches-waiting:' });

async function* scanLists<Q extends TurnQueue>(
  redis: RedisClient,
  shard: number,
  names: { readonly setName: string; readonly listName: string },
): AsyncGenerator<WaitingList<Q>[]> {
  let cursor = '0';
  do {
    const values = { prefix: prefixOf(shard), cursor, ...names };
    const reply = await callRedis(() => scanListsScript.run(redis, values));
    const [next, lists] = reply as [string, [string, Q, string, number, string][]];
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

/** A job whose webhook must be queued. */
export interface DueHook {
  readonly accountId: string;
  readonly jobId: string;
  readonly url: string;
  readonly event: JobEvent;
}

export async function findDueHooks(redis: RedisClient, shard: number): Promise<DueHook[]> {
  const reply = await callRedis(() => hooksScript.run(redis, { prefix: prefixOf(shard) }));
  return (reply as [string, string, string, string][]).map(([accountId, jobId, url, event]) => ({
    accountId,
    jobId,
    url,
    event: `job.${event === 'started' ? event : statusOf(event)}` as JobEvent,
  }));
}

/** Records that the job's webhook has been queued. */
export async function markHookQueued(
  redis: RedisClient,
  { accountId, jobId, event }: DueHook,
): Promise<void> {
  const shard = shardOf(accountId);
  const key = event === 'job.started' ? redisKeys.jobStartHooks(shard) : redisKeys.jobHooks(shard);
  await callRedis(() => redis.zrem(key, `${accountId} ${jobId}`));
}

import { cancelJob, listLines } from '../../shared/jobs/end-job-scripts.ts';
import { findTransition, type JobRecord } from '../../shared/jobs/job-record.ts';
import { JobStore } from '../../shared/jobs/job-store.ts';
import { JobTurns } from '../../shared/jobs/job-turns-store.ts';
import { placeJob } from '../../shared/jobs/place-job-script.ts';
import { noteRetried, reserveRetry, type RetryOutcome } from '../../shared/jobs/retry-job-script.ts';
import { releaseReservation } from '../../shared/billing/settle-script.ts';
import type { AdmittedRequest, Job, QueueName } from '../../shared/queue/job-kinds.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys, shardCount } from '../../shared/redis/redis-keys.ts';
import { createTimeOrderedId } from '../../shared/runtime/time-ordered-id.ts';
import { RefusedError, type AdminContext } from './command.ts';

/** Looked at in one step. */
const atOnce = 500;
/** How long a job that is retried may wait before it starts. */
const retryDeadlineMs = 24 * 60 * 60_000;

/** Durable jobs that failed within the last day, the latest first. */
export async function listFailedJobs({ redis }: AdminContext, queue: QueueName): Promise<object[]> {
  const failed: JobRecord[] = [];
  for await (const job of findFailed(redis, queue)) failed.push(job);
  const endOf = (job: JobRecord): number => findTransition(job, 'failed') ?? 0;
  return failed.sort((a, b) => endOf(b) - endOf(a)).map((job) => describe(job, endOf(job)));
}

const describe = (job: JobRecord, endedAtMs: number): object => ({
  id: job.id,
  account: job.accountId,
  model: job.model,
  code: job.error?.code ?? null,
  message: job.error?.message ?? null,
  attempts: job.attempts,
  ended_at: new Date(endedAtMs).toISOString(),
});

async function* findFailed(redis: RedisClient, queue: QueueName): AsyncGenerator<JobRecord> {
  const store = new JobStore(redis);
  for (let shard = 0; shard < shardCount; shard++) {
    const members = await redis.zrevrange(redisKeys.jobFailures(shard, queue), 0, -1);
    for (let from = 0; from < members.length; from += atOnce) {
      const some = members.slice(from, from + atOnce).map((member) => member.split(' ') as [string, string]);
      const found = await Promise.all(some.map(([accountId, id]) => store.find(accountId, id)));
      for (const one of found) if (one !== null) yield one.job;
    }
  }
}

export interface Retried {
  readonly retried: number;
  readonly refused: { readonly id: string; readonly account: string; readonly why: string }[];
}

/** Makes a new job of each that failed and can be retried. */
export async function retryFailedJobs(context: AdminContext, queue: QueueName): Promise<Retried> {
  const refused: Retried['refused'] = [];
  let retried = 0;
  const jobs: JobRecord[] = [];
  for await (const job of findFailed(context.redis, queue)) jobs.push(job);
  for (const job of jobs) {
    const why = await retryJob(context, job);
    if (why === null) retried += 1;
    else refused.push({ id: job.id, account: job.accountId, why });
  }
  return { retried, refused };
}

const reasons: Record<Exclude<RetryOutcome, 'ok'>, string> = {
  not_failed: 'it has not failed',
  retried: 'it was retried before',
  charged: 'it failed after output, which was charged',
  sent_again: 'its caller has sent it again under its Idempotency-Key',
  not_kept: 'its body is not kept: it was large, or one of very many that failed',
  unknown: 'its account could not be loaded',
  banned: 'its account is banned',
  insufficient: 'the balance of its account is too low',
};

/** @returns why it is not retried; null where it is */
async function retryJob({ redis, hotAccounts }: AdminContext, job: JobRecord): Promise<string | null> {
  const { accountId, queue, model } = job;
  const id = createTimeOrderedId();
  let outcome = await reserveRetry(redis, job, id);
  if (outcome === 'unknown') {
    await hotAccounts.load(accountId);
    outcome = await reserveRetry(redis, job, id);
  }
  // It was placed by a command that was cut off before it could say so.
  if (outcome === 'retried') await noteRetried(redis, job);
  if (outcome !== 'ok') return reasons[outcome];
  const admittedAtMs = Date.now();
  const renew = (request: AdmittedRequest): AdmittedRequest => ({
    ...request,
    requestId: id,
    admittedAtMs,
    deadlineAtMs: admittedAtMs + retryDeadlineMs,
    claimHash: null,
  });
  try {
    const text = await redis.get(redisKeys.jobBody(accountId, job.id));
    const body = JSON.parse(text ?? 'null') as { v: 1; job: Job } | null;
    if (body === null) throw new RefusedError(reasons.not_kept);
    const work = body.job;
    const again =
      work.kind === 'embedding'
        ? { ...work, parts: work.parts.map((part) => ({ ...part, request: renew(part.request) })) }
        : { ...work, request: renew(work.request) };
    const { weight } = await placeJob(redis, redis, {
      id,
      accountId,
      queue,
      model,
      timeoutMs: retryDeadlineMs,
      operation: job.operation,
      format: job.format,
      webhookUrl: job.webhook?.url ?? null,
      body: Buffer.from(JSON.stringify({ ...body, job: again })),
    });
    await noteRetried(redis, job);
    await new JobTurns(redis).add({ queue, model }, accountId, weight);
    return null;
  } catch (error) {
    await releaseReservation(redis, { accountId, requestId: id, claimHash: null });
    return (error as Error).message;
  }
}

/** Cancels all durable jobs of a queue that wait, and refunds them. @returns how many there were */
export async function drainJobs({ redis }: AdminContext, queue: QueueName): Promise<number> {
  const turns = new JobTurns(redis);
  let drained = 0;
  for (let shard = 0; shard < shardCount; shard++) {
    for await (const lines of listLines(redis, shard)) {
      for (const line of lines.filter((one) => one.queue === queue)) {
        const key = redisKeys.jobsWaiting(line.accountId, queue, line.model);
        for (let ids = await redis.zrevrange(key, 0, atOnce - 1); ids.length > 0;) {
          const done = await Promise.all(ids.map((id) => cancelJob(redis, line.accountId, id)));
          const ended = done.filter(({ outcome }) => outcome === 'cancelled').length;
          await Promise.all(Array.from({ length: ended }, () => turns.drop(line, line.accountId)));
          drained += ended;
          if (ended === 0) break;
          ids = await redis.zrevrange(key, 0, atOnce - 1);
        }
      }
    }
  }
  return drained;
}

/** Durable jobs of a queue, by what they are at. */
export async function countJobsOf(
  redis: RedisClient,
  queue: QueueName,
): Promise<{ readonly waiting: number; readonly active: number; readonly failed: number }> {
  const shards = Array.from({ length: shardCount }, (_, shard) => shard);
  const [waiting, failed, { running }] = await Promise.all([
    Promise.all(shards.map((shard) => redis.hget(redisKeys.jobTotals(shard), queue))),
    Promise.all(shards.map((shard) => redis.zcard(redisKeys.jobFailures(shard, queue)))),
    new JobTurns(redis).counts(queue),
  ]);
  const sum = (counts: readonly (string | number | null)[]): number =>
    counts.reduce<number>((total, count) => total + Number(count ?? 0), 0);
  return { waiting: sum(waiting), active: running, failed: sum(failed) };
}

import { AppError } from '../contract/errors.ts';
import type { AdmittedRequest } from '../money/admitted-request.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { createTimeOrderedId } from '../platform/runtime/time-ordered-id.ts';
import { finalFailures } from '../work/jobs/job-constants.ts';
import { defaultWebhookEvents, type JobRecord } from '../work/jobs/job-record.ts';
import { JobTurns } from '../work/jobs/job-turns-store.ts';
import { placeJob } from '../work/jobs/place-job-script.ts';
import type { Job, QueueName } from '../work/queue/job-kinds.ts';
import { releaseReservation } from '../work/settlement/settle-script.ts';
import type { AdminDeps } from './admin-deps.ts';
import type { AuditTrail } from './audit-trail.ts';
import { toDryRun } from './dry-run.ts';
import { readFailedJobs } from './failed-jobs.ts';
import { formatPlace, type ListPlace } from './list-place.ts';
import { writeOperatorReason } from './operator-reasons.ts';
import { countFailedJobs } from './queue-jobs.ts';
import { markRetried, reserveRetry, type RetryOutcome } from './retry-job-script.ts';

type Deps = Pick<AdminDeps, 'redis' | 'hotAccounts'>;

/** How long a retried job may wait before it starts. */
const retryDeadlineMs = 24 * 60 * 60_000;
/**
 * Maximum number of distinct reasons. There are usually few, but every error message from placing a job is a separate
 * reason.
 */
const maxReasons = 20;

/** Jobs that were not retried, grouped by reason. They remain failed jobs. */
export interface FailedRetries {
  readonly why: string;
  jobs: number;
  /** The latest of these jobs. */
  readonly example: { readonly id: string; readonly account: string };
}

export interface Retried {
  readonly retried: number;
  readonly refused: readonly FailedRetries[];
}

/** Some of the failed jobs. */
export interface RetriedPage extends Retried {
  readonly hasMore: boolean;
  /** Where the next page begins; null if there were no failed jobs. */
  readonly lastId: string | null;
}

/** Which failed jobs to retry. */
export interface RetryRequest {
  /** How many to process; all by default. */
  readonly limit?: number;
  /** The place of the last one of the page before. */
  readonly after?: ListPlace | null;
  /** Receives the number of jobs processed so far. */
  readonly onProgress?: (jobs: number) => void;
}

/** Creates a new job for each failed job that can be retried, latest first. It reserves and charges as usual. */
export async function retryFailedJobs(
  deps: Deps,
  trail: AuditTrail,
  queue: QueueName,
  request: RetryRequest = {},
): Promise<RetriedPage> {
  return await trail.run(
    { action: 'queue.retry', id: queue },
    () => processFailedJobs(deps, queue, request, (job) => retryJob(deps, job)),
    ({ retried }) => ({ retried }),
  );
}

/**
 * What retrying failed jobs would do. Each job is looked at by itself: of several that the balance of one account does
 * not pay for together, all count as retried.
 */
export async function dryRunRetryFailedJobs(deps: Deps, queue: QueueName, request: RetryRequest) {
  const accounts = new Set<string>();
  const failed = await countFailedJobs(deps.redis, queue);
  const { retried, refused } = await processFailedJobs(deps, queue, request, async (job) => {
    const outcome = await reserve(deps, job, job.id, true);
    if (outcome !== 'ok') return explainOutcome(job, outcome);
    accounts.add(job.accountId);
    return null;
  });
  return toDryRun({ failed, jobs: retried, accounts: accounts.size, refused }, false);
}

/** @param retry returns why a job is not retried; null if it is */
async function processFailedJobs(
  { redis }: Deps,
  queue: QueueName,
  { limit = Infinity, after = null, onProgress }: RetryRequest,
  retry: (job: JobRecord) => Promise<string | null>,
): Promise<RetriedPage> {
  const failed = new Map<string, FailedRetries>();
  let [jobs, retried] = [0, 0];
  let last: ListPlace | null = null;
  const end = (hasMore: boolean): RetriedPage => ({
    retried,
    refused: [...failed.values()],
    hasMore,
    lastId: last === null ? null : formatPlace(last),
  });
  for await (const { place, job } of readFailedJobs(redis, queue, after)) {
    if (jobs === limit) return end(true);
    const why = await retry(job);
    if (why === null) retried += 1;
    else countFailed(failed, job, why);
    last = place;
    jobs += 1;
    onProgress?.(jobs);
  }
  return end(false);
}

function countFailed(failed: Map<string, FailedRetries>, { id, accountId }: JobRecord, reason: string): void {
  const why = failed.has(reason) || failed.size < maxReasons ? reason : writeOperatorReason('other');
  const known = failed.get(why);
  if (known === undefined) failed.set(why, { why, jobs: 1, example: { id, account: accountId } });
  else known.jobs += 1;
}

const reasons = {
  not_failed: 'notFailed',
  retried: 'retried',
  charged: 'charged',
  sent_again: 'sentAgain',
  not_kept: 'notKept',
  unknown: 'notLoaded',
  banned: 'banned',
  expired: 'keyExpired',
  model_refused: 'modelRefused',
  insufficient: 'insufficient',
  over_budget: 'overBudget',
} as const satisfies Record<Exclude<RetryOutcome, 'ok'>, string>;

function explainOutcome({ error }: JobRecord, outcome: keyof typeof reasons): string {
  return outcome === 'not_kept' && error !== null && finalFailures.includes(error.code)
    ? writeOperatorReason('neverSucceeds', { code: error.code })
    : writeOperatorReason(reasons[outcome]);
}

/** @param newId the request that gets the reservation */
async function reserve(
  { redis, hotAccounts }: Deps,
  job: JobRecord,
  newId: string,
  isDryRun = false,
): Promise<RetryOutcome> {
  const outcome = await reserveRetry(redis, job, newId, isDryRun);
  if (outcome !== 'unknown') return outcome;
  await hotAccounts.load(job.accountId);
  return await reserveRetry(redis, job, newId, isDryRun);
}

/** @returns why the job is not retried; null if it is */
async function retryJob(deps: Deps, job: JobRecord): Promise<string | null> {
  const { redis } = deps;
  const { accountId, queue, model } = job;
  const id = createTimeOrderedId();
  const outcome = await reserve(deps, job, id);
  // An interrupted command has placed the new job but may not have recorded that.
  if (outcome === 'retried') await markRetried(redis, job);
  if (outcome !== 'ok') return explainOutcome(job, outcome);
  const admittedAtMs = Date.now();
  const renewRequest = (request: AdmittedRequest): AdmittedRequest => ({
    ...request,
    requestId: id,
    admittedAtMs,
    deadlineAtMs: admittedAtMs + retryDeadlineMs,
    claimHash: null,
  });
  try {
    const text = await redis.get(redisKeys.jobBody(accountId, job.id));
    const body = JSON.parse(text ?? 'null') as { v: 1; job: Job } | null;
    if (body === null) throw new AppError('not_found', { message: writeOperatorReason('notKept') });
    const oldJob = body.job;
    const newJob =
      oldJob.kind === 'embedding'
        ? { ...oldJob, parts: oldJob.parts.map((part) => ({ ...part, request: renewRequest(part.request) })) }
        : { ...oldJob, request: renewRequest(oldJob.request) };
    const { weight } = await placeJob(redis, redis, {
      id,
      accountId,
      queue,
      model,
      timeoutMs: retryDeadlineMs,
      operation: job.operation,
      cancelAfterMs: job.cancelAtMs === null ? null : job.cancelAtMs - job.createdAtMs,
      format: job.format,
      webhookUrl: job.webhook?.url ?? null,
      webhookEvents: job.webhook?.events ?? defaultWebhookEvents,
      publicUrl: job.webhook?.publicUrl ?? '',
      body: Buffer.from(JSON.stringify({ ...body, job: newJob })),
    });
    await markRetried(redis, job);
    await new JobTurns(redis).add({ queue, model }, accountId, weight);
    return null;
  } catch (error) {
    await releaseReservation(redis, { accountId, requestId: id, claimHash: null });
    return (error as Error).message;
  }
}

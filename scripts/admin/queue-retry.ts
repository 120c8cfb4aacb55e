import { releaseReservation } from '../../shared/work/settlement/settle-script.ts';
import { finalFailures } from '../../shared/work/jobs/job-constants.ts';
import { defaultWebhookEvents, type JobRecord } from '../../shared/work/jobs/job-record.ts';
import { JobTurns } from '../../shared/work/jobs/job-turns-store.ts';
import { placeJob } from '../../shared/work/jobs/place-job-script.ts';
import { markRetried, reserveRetry, type RetryOutcome } from './retry-job-script.ts';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import type { Job, QueueName } from '../../shared/work/queue/job-kinds.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { createTimeOrderedId } from '../../shared/platform/runtime/time-ordered-id.ts';
import { CommandError, type AdminContext } from './command.ts';
import { readFailedJobs } from './failed-jobs.ts';

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

/**
 * Creates a new job for each failed job that can be retried, latest first.
 * @param onProgress receives the number of jobs processed so far
 */
export async function retryFailedJobs(
  context: AdminContext,
  queue: QueueName,
  onProgress: (jobs: number) => void,
): Promise<Retried> {
  const failed = new Map<string, FailedRetries>();
  let jobs = 0;
  let retried = 0;
  for await (const job of readFailedJobs(context.redis, queue)) {
    const why = await retryJob(context, job);
    if (why === null) retried += 1;
    else countFailed(failed, job, why);
    onProgress(++jobs);
  }
  return { retried, refused: [...failed.values()] };
}

function countFailed(failed: Map<string, FailedRetries>, { id, accountId }: JobRecord, reason: string): void {
  const why = failed.has(reason) || failed.size < maxReasons ? reason : 'another reason';
  const known = failed.get(why);
  if (known === undefined) failed.set(why, { why, jobs: 1, example: { id, account: accountId } });
  else known.jobs += 1;
}

const reasons: Record<Exclude<RetryOutcome, 'ok'>, string> = {
  not_failed: 'it has not failed',
  retried: 'it was retried before',
  charged: 'it failed after output, which was charged',
  sent_again: 'its caller has sent it again under its Idempotency-Key',
  not_kept:
    'its request is not stored, because it was large, or because very many jobs of its account failed',
  unknown: 'its account could not be loaded',
  banned: 'its account is banned',
  expired: 'the key of its account has expired',
  model_refused: 'its account may not use its model',
  insufficient: 'the balance of its account is too low',
  over_budget: 'the budget of its account is used up',
};

function explainOutcome({ error }: JobRecord, outcome: Exclude<RetryOutcome, 'ok'>): string {
  return outcome === 'not_kept' && error !== null && finalFailures.includes(error.code)
    ? `it failed with ${error.code}, which a retry does not fix`
    : reasons[outcome];
}

/** @returns why the job is not retried; null if it is */
async function retryJob({ redis, hotAccounts }: AdminContext, job: JobRecord): Promise<string | null> {
  const { accountId, queue, model } = job;
  const id = createTimeOrderedId();
  let outcome = await reserveRetry(redis, job, id);
  if (outcome === 'unknown') {
    await hotAccounts.load(accountId);
    outcome = await reserveRetry(redis, job, id);
  }
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
    if (body === null) throw new CommandError(reasons.not_kept);
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

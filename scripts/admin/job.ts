import { toRubNumber } from '../../shared/encoding/money.ts';
import { cancelJob } from '../../shared/work/jobs/end-job-scripts.ts';
import { findTransition, hasEnded, type JobRecord } from '../../shared/work/jobs/job-record.ts';
import { JobStore, type FoundJob } from '../../shared/work/jobs/job-store.ts';
import { JobTurns } from '../../shared/work/jobs/job-turns-store.ts';
import { sendControl } from '../../shared/work/replies/worker-control.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { CommandError, type AdminContext, type AdminVerb } from './command.ts';
import { findOwner } from './find-owner.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';

export const jobVerbs: Record<string, AdminVerb> = {
  show: {
    usage: '<job>',
    help: 'shows a job: its times, attempts, worker, error, cost and webhook',
    positionals: 1,
    options: [],
    run: showJob,
  },
  cancel: {
    usage: '<job>',
    help: 'cancels a job; if it is running, its worker ends it, and what it has cost until then is charged',
    positionals: 1,
    options: [],
    run: cancel,
  },
};

/** The id of a request. */
const jobId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** @throws CommandError if there is no such job */
async function findJobOwner(context: AdminContext): Promise<{ accountId: string; id: string }> {
  const id = context.positionals[0]!;
  const accountId = jobId.test(id) ? await findOwner(context, (account) => redisKeys.job(account, id)) : null;
  if (accountId !== null) return { accountId, id };
  throw new CommandError(
    `No job ${quote(id)}. Jobs are kept for 24 hours after they end; requests without "Prefer: respond-async" are not jobs.`,
  );
}

async function findAndDescribe(
  { redis }: AdminContext,
  { accountId, id }: { readonly accountId: string; readonly id: string },
): Promise<object> {
  const found = await new JobStore(redis).find(accountId, id);
  if (found === null) throw new CommandError(`The job ${id} no longer exists.`);
  return describeJob(found);
}

async function showJob(context: AdminContext): Promise<unknown> {
  return await findAndDescribe(context, await findJobOwner(context));
}

/** Cancels a job as its owner would. A job that has ended is not changed. */
async function cancel(context: AdminContext): Promise<unknown> {
  const { redis } = context;
  const owner = await findJobOwner(context);
  const cancellation = await cancelJob(redis, owner.accountId, owner.id);
  if (cancellation.outcome === 'cancelled') await new JobTurns(redis).drop(cancellation, owner.accountId);
  if (cancellation.outcome === 'requested')
    await sendControl(redis, cancellation.workerId, { action: 'cancel-job', jobId: owner.id });
  return await findAndDescribe(context, owner);
}

function describeJob({ job, rank }: FoundJob): object {
  const { receipt, webhook } = job;
  return {
    id: job.id,
    account: job.accountId,
    status: job.status,
    operation: job.operation,
    queue: job.queue,
    model: job.model,
    created_at: toText(job.createdAtMs),
    started_at: toText(findTransition(job, 'active')),
    ended_at: toText(findEnd(job)),
    deadline_at: toText(job.deadlineAtMs),
    cancel_at: toText(job.cancelAtMs),
    attempts: job.attempts,
    worker: job.workerId,
    cancel_requested: job.isCancelRequested,
    // Of the account's own jobs for the model.
    jobs_before: rank,
    progress: job.progress,
    cost: receipt === null ? null : toRubNumber(receipt.costNano),
    free: receipt?.free ?? null,
    error_code: job.error?.code ?? null,
    error_message: job.error?.message ?? null,
    response_deleted: job.isResponseDeleted,
    webhook_url: webhook?.url ?? null,
    webhook_events: webhook?.events ?? [],
    webhook: webhook?.report === undefined || webhook.report === null ? null : JSON.parse(webhook.report),
  };
}

const findEnd = (job: JobRecord): number | null =>
  hasEnded(job) ? findTransition(job, 'succeeded', 'failed', 'cancelled') : null;

const toText = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

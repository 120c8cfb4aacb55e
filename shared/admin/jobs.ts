import { toRubNumber } from '../encoding/money.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { cancelJob as cancelInRedis } from '../work/jobs/end-job-scripts.ts';
import { findTransition, hasEnded, type JobRecord } from '../work/jobs/job-record.ts';
import { JobStore, type FoundJob } from '../work/jobs/job-store.ts';
import { JobTurns } from '../work/jobs/job-turns-store.ts';
import { sendControl } from '../work/replies/worker-control.ts';
import type { AdminDeps } from './admin-deps.ts';
import type { AuditTrail } from './audit-trail.ts';
import { findOwner, searchOwner } from './find-owner.ts';
import { listAfter } from './list-after-script.ts';
import { formatPlace, type ListPlace, type OwnedId } from './list-place.ts';
import type { Page } from './page.ts';

type Deps = Pick<AdminDeps, 'redis' | 'accounts'>;

/** The id of a request. */
const jobId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Finds the account of a job. See `findOwner`. @returns null if there is no such job */
export async function findJobOwner({ redis }: Pick<Deps, 'redis'>, id: string): Promise<OwnedId | null> {
  const accountId = jobId.test(id) ? await findOwner(redis, id) : null;
  return accountId === null ? null : { accountId, id };
}

/** Finds the account of a job, for commands. See `searchOwner`. @returns null if there is no such job */
export async function searchJobOwner(deps: Deps, id: string): Promise<OwnedId | null> {
  const keyOf = (account: string): string => redisKeys.job(account, id);
  const accountId = jobId.test(id) ? await searchOwner(deps, id, keyOf) : null;
  return accountId === null ? null : { accountId, id };
}

/** @returns null if the job no longer exists */
export async function showJob({ redis }: Pick<Deps, 'redis'>, { accountId, id }: OwnedId) {
  const found = await new JobStore(redis).find(accountId, id);
  return found === null ? null : describeJob(found);
}

/** Lists the jobs of an account, newest first. A page reads only its own jobs. */
export async function listJobs(
  { redis }: Pick<Deps, 'redis'>,
  accountId: string,
  { limit, after }: { readonly limit: number; readonly after: ListPlace | null },
): Promise<Page<DescribedJob>> {
  const position = after === null ? null : { score: after.atMs, member: after.id };
  const found = await listAfter(redis, redisKeys.jobsList(accountId, 'all'), position, limit + 1);
  const listed = found.slice(0, limit);
  const last = listed.at(-1);
  const jobs = await new JobStore(redis).findMany(
    accountId,
    listed.map(({ member }) => member),
  );
  return {
    rows: jobs.map(describeJob),
    hasMore: found.length > limit,
    lastId: last === undefined ? null : formatPlace({ accountId, id: last.member, atMs: last.score }),
  };
}

/** Cancels a job as its owner would. A job that has ended is not changed. */
export async function cancelJob(
  { redis }: Pick<Deps, 'redis'>,
  trail: AuditTrail,
  owner: OwnedId,
): Promise<void> {
  const { accountId, id } = owner;
  const before = await showJob({ redis }, owner);
  await trail.run(
    { action: 'job.cancel', id, before: { account: accountId, status: before?.status ?? null } },
    async () => {
      const cancellation = await cancelInRedis(redis, accountId, id);
      if (cancellation.outcome === 'cancelled') await new JobTurns(redis).drop(cancellation, accountId);
      if (cancellation.outcome === 'requested')
        await sendControl(redis, cancellation.workerId, { action: 'cancel-job', jobId: id });
      return cancellation;
    },
    ({ outcome }) => ({ outcome }),
  );
}

function describeJob({ job, rank }: FoundJob) {
  const { receipt, webhook } = job;
  return {
    id: job.id,
    account: job.accountId,
    status: job.status,
    operation: job.operation,
    queue: job.queue,
    model: job.model,
    created_at: new Date(job.createdAtMs).toISOString(),
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
    webhook:
      webhook?.report === undefined || webhook.report === null
        ? null
        : (JSON.parse(webhook.report) as object),
  };
}
export type DescribedJob = ReturnType<typeof describeJob>;

const findEnd = (job: JobRecord): number | null =>
  hasEnded(job) ? findTransition(job, 'succeeded', 'failed', 'cancelled') : null;

const toText = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

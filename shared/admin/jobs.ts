import { AppError } from '../contract/errors.ts';
import type { JobStatus } from '../contract/job-terms.ts';
import { toRubNumber } from '../encoding/money.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../platform/redis/redis-keys.ts';
import { cancelJob as cancelInRedis } from '../work/jobs/end-job-scripts.ts';
import { findTransition, hasEnded, statusLetter, type JobRecord } from '../work/jobs/job-record.ts';
import { JobStore, type FoundJob } from '../work/jobs/job-store.ts';
import { JobTurns } from '../work/jobs/job-turns-store.ts';
import { queueNames, type QueueName } from '../work/queue/job-kinds.ts';
import { sendControl } from '../work/replies/worker-control.ts';
import type { AdminDeps } from './admin-deps.ts';
import type { AuditTrail } from './audit-trail.ts';
import { findOwner, searchOwner } from './find-owner.ts';
import { readLatestMembers, takeWanted, type ListedRecord, type MemberList } from './latest-members.ts';
import type { ListPlace, OwnedId } from './list-place.ts';
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

export interface JobFilter {
  /** Only of this account; null for all, which needs a status. */
  readonly accountId: string | null;
  /** Null for all statuses. */
  readonly status: JobStatus | null;
  /** Only of this queue, among failed jobs of all accounts. */
  readonly queue?: QueueName;
}

/**
 * Lists jobs. Those of an account come newest first. Of all accounts, queued ones come by their deadlines, active ones by
 * when their workers last reported, and ended ones by their ends; the latest first. A page of all accounts reads at most
 * 1 000 jobs.
 */
export async function listJobs(
  { redis }: Pick<Deps, 'redis'>,
  filter: JobFilter,
  { limit, after }: { readonly limit: number; readonly after: ListPlace | null },
): Promise<Page<DescribedJob>> {
  const { status } = filter;
  const isWanted = ({ job }: FoundJob): boolean => status === null || job.status === status;
  const page = await takeWanted(readJobs(redis, filter, after, limit + 1), isWanted, limit);
  return { ...page, rows: page.rows.map(describeJob) };
}

/** Yields the jobs of a list, in its order, one page at a time. Memory does not grow with their number. */
export async function* readJobs(
  redis: RedisClient,
  filter: JobFilter,
  after: ListPlace | null = null,
  pageSize?: number,
): AsyncGenerator<ListedRecord<FoundJob>> {
  const store = new JobStore(redis);
  for await (const places of readLatestMembers(redis, findLists(filter), after, pageSize)) {
    const accounts = [...new Set(places.map(({ accountId }) => accountId))];
    const found = await Promise.all(
      accounts.map((accountId) => {
        const own = places.filter((place) => place.accountId === accountId);
        return store.findMany(
          accountId,
          own.map(({ id }) => id),
        );
      }),
    );
    const jobs = new Map(found.flat().map((one) => [`${one.job.accountId} ${one.job.id}`, one]));
    for (const place of places) yield { place, record: jobs.get(`${place.accountId} ${place.id}`) ?? null };
  }
}

function findLists({ accountId, status, queue }: JobFilter): MemberList[] {
  if (accountId !== null)
    return [
      { key: redisKeys.jobsList(accountId, status === null ? 'all' : statusLetter(status)), accountId },
    ];
  const ofShards = (keyOf: (shard: number) => string): MemberList[] =>
    Array.from({ length: shardCount }, (_, shard) => ({ key: keyOf(shard), accountId: null }));
  switch (status) {
    case 'queued':
      return ofShards(redisKeys.jobDeadlines);
    case 'active':
      return ofShards(redisKeys.jobLeases);
    case 'failed':
      return (queue === undefined ? queueNames : [queue]).flatMap((name) =>
        ofShards((shard) => redisKeys.jobFailures(shard, name)),
      );
    case 'succeeded':
    case 'cancelled':
      return ofShards(redisKeys.jobsEnded);
    default:
      throw new AppError('validation_failed', { message: 'Name an account, a status of jobs, or both.' });
  }
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

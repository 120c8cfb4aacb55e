import type { Queue } from 'bullmq';
import type { CatalogStore } from '../catalog/catalog-store.ts';
import { AppError } from '../contract/errors.ts';
import { toRubNumber } from '../encoding/money.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { listSlotSets } from '../routing/candidate-keys.ts';
import { hasBatchEnded } from '../work/batches/batch-record.ts';
import { BatchStore } from '../work/batches/batch-store.ts';
import { readDemand } from '../work/demand/read-demand.ts';
import { hasEnded, findTransition } from '../work/jobs/job-record.ts';
import { JobStore } from '../work/jobs/job-store.ts';
import { JobTurns } from '../work/jobs/job-turns-store.ts';
import {
  bullQueues,
  listRequests,
  queueOfModel,
  type ChatItem,
  type EmbeddingJob,
  type ImageJob,
  type QueueItem,
  type QueueName,
} from '../work/queue/job-kinds.ts';
import { withBullQueue } from '../work/queue/open-bull-queue.ts';
import { readyLists } from '../work/queue/ready-queue.ts';
import { noLongerExists } from './describe-batch.ts';
import { countLeft } from './dry-run-accounts.ts';
import { toDryRun } from './dry-run.ts';
import type { OwnedId } from './list-place.ts';

interface Deps {
  readonly redis: RedisClient;
}

type Catalog = Pick<CatalogStore, 'current' | 'find'>;

/** Items of each list of a queue that are read for their accounts. They have up to 64 KB. */
const maxItems = 100;
/** Accounts of each list of waiting accounts that are read. */
const maxAccounts = 1_000;

/** What draining a queue would cancel. The numbers are those that workers and api processes reported within a second. */
export async function dryRunDrainQueue({ redis }: Deps, catalog: Catalog, queue: QueueName) {
  const [{ work }, accounts] = await Promise.all([
    readDemand({ redis, catalog }),
    findWaitingAccounts(redis, catalog, queue),
  ]);
  const count = (callClass: string): number =>
    work.reduce(
      (sum, one) => sum + (one.queue === queue && one.callClass === callClass ? one.waiting : 0),
      0,
    );
  return toDryRun({ jobs: count('job'), requests: count('interactive'), accounts: accounts.size }, false);
}

/**
 * Finds accounts with requests or jobs that wait, in the queue or for a call slot. Those of other queues at the same
 * upstreams are among them.
 */
async function findWaitingAccounts(
  redis: RedisClient,
  { current }: Catalog,
  queue: QueueName,
): Promise<ReadonlySet<string>> {
  const routes = current.models
    .filter(({ type }) => queueOfModel(type) === queue)
    .flatMap((model) => model.routes);
  const sets = listSlotSets(routes).flatMap((key) => [
    redisKeys.waitingFor(key),
    redisKeys.jobsWaitSince(key),
  ]);
  const last = String(maxAccounts - 1);
  const [survey, waiting, callers] = await Promise.all([
    new JobTurns(redis).survey([queue], maxAccounts),
    callRedis(() => Promise.all(sets.map((key) => redis.zrange(key, '0', last)))),
    callRedis(() => (queue === 'chat' ? readCallersOfChats(redis) : readCallersOfBull(redis, queue))),
  ]);
  return new Set([
    ...survey.queues.flat().flatMap(({ accountIds }) => accountIds),
    ...waiting.flat(),
    ...callers,
  ]);
}

async function readCallersOfChats(redis: RedisClient): Promise<string[]> {
  const lists = await Promise.all(
    Object.values(readyLists).map((list) => redis.lrange(list, 0, maxItems - 1)),
  );
  return lists
    .flat()
    .filter((item) => item !== '')
    .flatMap((text) => {
      const item = JSON.parse(text) as ChatItem;
      return 'stored' in item ? item.requests : [item.request];
    })
    .map(({ accountId }) => accountId);
}

async function readCallersOfBull(redis: RedisClient, queue: keyof typeof bullQueues): Promise<string[]> {
  const accounts: string[] = [];
  for (const name of bullQueues[queue]) {
    const jobs = await withBullQueue(name, redis, (bull: Queue<QueueItem<ImageJob | EmbeddingJob>>) =>
      bull.getJobs(['waiting', 'prioritized'], 0, maxItems - 1),
    );
    for (const { data } of jobs)
      accounts.push(
        ...('stored' in data ? data.requests : listRequests(data)).map(({ accountId }) => accountId),
      );
  }
  return accounts;
}

/** Whether cancelling a job would change it. @throws AppError `not_found` if it no longer exists */
export async function dryRunCancelJob({ redis }: Deps, { accountId, id }: OwnedId) {
  const found = await new JobStore(redis).find(accountId, id);
  if (found === null) throw new AppError('not_found', { message: `The job ${id} no longer exists.` });
  const { job } = found;
  const startedAtMs = job.status === 'active' ? findTransition(job, 'active') : null;
  return toDryRun({
    status: job.status,
    jobs: hasEnded(job) ? 0 : 1,
    is_running: job.status === 'active',
    running_seconds: startedAtMs === null ? null : Math.max(0, Date.now() - startedAtMs) / 1_000,
  });
}

/** What cancelling a batch would leave undone. @throws AppError `not_found` if it no longer exists */
export async function dryRunCancelBatch({ redis }: Deps, { accountId, id }: OwnedId) {
  const batch = await new BatchStore(redis).find(accountId, id);
  if (batch === null) throw noLongerExists(id);
  return toDryRun({
    status: batch.status,
    batches: hasBatchEnded(batch) || batch.status === 'cancelling' ? 0 : 1,
    lines_done: batch.succeeded + batch.failed,
    lines_left: countLeft(batch),
    cost: toRubNumber(batch.costNano),
    reserved: toRubNumber(batch.reservedNano),
  });
}

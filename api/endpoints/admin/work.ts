import { addAccountNames } from '../../../shared/admin/account-names.ts';
import {
  cancelBatch,
  describeRow,
  findBatchOwner,
  isBatchId,
  retryFailedLines,
} from '../../../shared/admin/batches.ts';
import { dryRunCancelBatch, dryRunCancelJob, dryRunDrainQueue } from '../../../shared/admin/dry-run-work.ts';
import { describeBatch } from '../../../shared/admin/describe-batch.ts';
import { cancelJob, findJobOwner, listJobs, showJob } from '../../../shared/admin/jobs.ts';
import { readPlace, type ListPlace, type OwnedId } from '../../../shared/admin/list-place.ts';
import { describeQueues, drainQueue as drainInStores } from '../../../shared/admin/queues.ts';
import type { Page } from '../../../shared/admin/page.ts';
import { dryRunRetryFailedJobs, retryFailedJobs } from '../../../shared/admin/retry-failed-jobs.ts';
import { listBatches } from '../../../shared/admin/read-batches.ts';
import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import { readIdempotencyKey } from '../../http/request/idempotency-key.ts';
import { readerOf, readFromDatabase, readFromRedis } from '../../http/request/read-turns.ts';
import type { Services } from '../../services.ts';
import { noSuchAccount } from './accounts.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { defineAdminEndpoint, presentPage, trailOf } from './define-admin-endpoint.ts';

export const listQueues = defineAdminEndpoint(
  operations.listQueues,
  (services) => (context) =>
    readFromRedis(services, readerOf(context), 'list', () => describeQueues(services, services.catalog)),
);

/** Not in a turn: the waiting work costs money until it is cancelled. */
export const drainQueue = defineAdminEndpoint(operations.drainQueue, (services) => async (context) => {
  const { queue } = context.state.path;
  if (context.state.query.dry_run)
    return await readFromRedis(services, readerOf(context), 'list', () =>
      dryRunDrainQueue(services, services.catalog, queue),
    );
  return await drainInStores(services, trailOf(services, context), queue);
});

export const listFailedJobsOfQueue = defineAdminEndpoint(
  operations.listFailedJobsOfQueue,
  (services) => async (context) => {
    const filter = { accountId: null, status: 'failed', queue: context.state.path.queue } as const;
    const request = placesOf(context.state.query, null);
    return await readFromRedis(services, readerOf(context), 'list', async () =>
      presentNamed(services, await listJobs(services, filter, request)),
    );
  },
);

/** Failed jobs that a call processes. */
const maxRetriedAtOnce = 1_000;

export const retryQueue = defineAdminEndpoint(operations.retryQueue, (services) => async (context) => {
  const { queue } = context.state.path;
  const { dry_run: isDryRun, after } = context.state.query;
  const request = placesOf({ limit: maxRetriedAtOnce, after }, null);
  if (isDryRun)
    return await readFromRedis(services, readerOf(context), 'list', () =>
      dryRunRetryFailedJobs(services, queue, request),
    );
  const page = await retryFailedJobs(services, trailOf(services, context), queue, request);
  const { retried, refused, hasMore, lastId } = page;
  return { queue, retried, refused, has_more: hasMore, last_id: lastId };
});

/** @param account its id, if the caller knows it */
async function findOwnerOfJob(services: Services, id: string, account?: string): Promise<OwnedId> {
  const owner = account === undefined ? await findJobOwner(services, id) : { accountId: account, id };
  if (owner === null) throw noSuchJob();
  return owner;
}

async function readJob(services: Services, owner: OwnedId): Promise<object> {
  const job = await showJob(services, owner);
  if (job === null) throw noSuchJob();
  return await nameOne(services, job);
}

interface OfAccount {
  readonly account: string;
}

const nameAll = <T extends OfAccount>(services: Services, rows: readonly T[]) =>
  addAccountNames(services, rows, ({ account }) => account);

const nameOne = async <T extends OfAccount>(services: Services, row: T): Promise<T> =>
  (await nameAll(services, [row]))[0]!;

/** Presents a page of a list, with the names of its accounts. */
const presentNamed = async <T extends OfAccount>(services: Services, page: Page<T>) =>
  presentPage({ ...page, rows: await nameAll(services, page.rows) }, (row) => row);

const noSuchJob = (): AppError =>
  new AppError('not_found', {
    message:
      'There is no such job. Jobs are kept for 24 hours after they end; requests without "Prefer: respond-async" are not jobs.',
  });

/** @throws AppError `not_found` */
async function checkAccount(services: Services, context: ApiContext, id: string): Promise<void> {
  const find = () => services.accounts.findById(id);
  if ((await readFromDatabase(services, context, 'one', find)) === null) throw noSuchAccount(id);
}

/**
 * The part of a list of jobs or batches that a query asks for.
 * @param account whose list it is; null for one of all accounts
 */
function placesOf(
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
  account: string | null,
): { readonly limit: number; readonly after: ListPlace | null } {
  const place = after === undefined ? null : readPlace(after);
  const isKnown = place !== null && (account === null || place.accountId === account);
  if (after === undefined || isKnown) return { limit, after: place };
  throw invalidField(['query', 'after'], 'must be the last_id of a page of this list');
}

export const listAdminJobs = defineAdminEndpoint(operations.listAdminJobs, (services) => async (context) => {
  const { account: accountId = null, status = null } = context.state.query;
  if (accountId === null && status === null)
    throw invalidField(['query', 'account'], 'or status is required: name an account, a status, or both');
  const request = placesOf(context.state.query, accountId);
  if (accountId !== null) await checkAccount(services, context, accountId);
  return await readFromRedis(services, readerOf(context), 'list', async () =>
    presentNamed(services, await listJobs(services, { accountId, status }, request)),
  );
});

export const getAdminJob = defineAdminEndpoint(
  operations.getAdminJob,
  (services) => (context) =>
    readFromRedis(services, readerOf(context), 'one', async () => {
      const { account } = context.state.query;
      return await readJob(services, await findOwnerOfJob(services, context.state.path.job_id, account));
    }),
);

export const cancelAdminJob = defineAdminEndpoint(
  operations.cancelAdminJob,
  (services) => async (context) => {
    const { account, dry_run: isDryRun } = context.state.query;
    const owner = await findOwnerOfJob(services, context.state.path.job_id, account);
    if (isDryRun) return await dryRunCancelJob(services, owner);
    await readJob(services, owner);
    await cancelJob(services, trailOf(services, context), owner);
    return await readJob(services, owner);
  },
);

async function findOwnerOfBatch(services: Services, id: string, account?: string): Promise<OwnedId> {
  if (!isBatchId(id)) throw noSuchBatch();
  const owner = account === undefined ? await findBatchOwner(services, id) : { accountId: account, id };
  if (owner === null) throw noSuchBatch();
  return owner;
}

const noSuchBatch = (): AppError =>
  new AppError('not_found', {
    message: 'There is no such batch. Batches are kept for 31 days after they end.',
  });

export const listAdminBatches = defineAdminEndpoint(
  operations.listAdminBatches,
  (services) => async (context) => {
    const { account: accountId = null, status = null } = context.state.query;
    const request = placesOf(context.state.query, accountId);
    if (accountId !== null) await checkAccount(services, context, accountId);
    return await readFromRedis(services, readerOf(context), 'list', async () => {
      const page = await listBatches(services.redis, { accountId, status }, request);
      const rows = page.rows.map((batch) => describeRow(batch, Date.now()));
      return await presentNamed(services, { ...page, rows });
    });
  },
);

async function showBatch(services: Services, { accountId, id }: OwnedId): Promise<object> {
  return await nameOne(services, await describeBatch(services.redis, accountId, id));
}

export const getAdminBatch = defineAdminEndpoint(
  operations.getAdminBatch,
  (services) => (context) =>
    readFromRedis(services, readerOf(context), 'one', async () => {
      const { account } = context.state.query;
      const owner = await findOwnerOfBatch(services, context.state.path.batch_id, account);
      return await showBatch(services, owner);
    }),
);

export const cancelAdminBatch = defineAdminEndpoint(
  operations.cancelAdminBatch,
  (services) => async (context) => {
    const { account, dry_run: isDryRun } = context.state.query;
    const owner = await findOwnerOfBatch(services, context.state.path.batch_id, account);
    if (isDryRun) return await dryRunCancelBatch(services, owner);
    await describeBatch(services.redis, owner.accountId, owner.id);
    await cancelBatch(services, trailOf(services, context), owner);
    return await showBatch(services, owner);
  },
);

export const retryAdminBatch = defineAdminEndpoint(
  operations.retryAdminBatch,
  (services) => async (context) => {
    const { account } = context.state.query;
    const owner = await findOwnerOfBatch(services, context.state.path.batch_id, account);
    // The new batch is created to its end, even if the operator does not wait for it.
    const { signal } = new AbortController();
    const mayRepeat = readIdempotencyKey(context) !== null;
    const trail = trailOf(services, context);
    const retried = await retryFailedLines({ ...services, signal }, trail, owner, mayRepeat);
    if (retried.isReplay) context.set('idempotent-replayed', 'true');
    return await showBatch(services, { ...owner, id: retried.id });
  },
);

import { toRubNumber } from '../../shared/encoding/money.ts';
import { Batches } from '../../shared/work/batches/batches.ts';
import { BatchStore } from '../../shared/work/batches/batch-store.ts';
import { hasBatchEnded, type BatchRecord, type BatchStatus } from '../../shared/work/batches/batch-record.ts';
import { presentBatch } from '../../shared/work/batches/present-batch.ts';
import { batchStatuses } from '../../shared/contract/batch-terms.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { CommandError, UsageError, type AdminContext, type AdminVerb } from './command.ts';
import { describeBatch, noLongerExists } from './describe-batch.ts';
import { findAccountId } from './find-account.ts';
import { findOwner } from './find-owner.ts';
import { readBatches } from './read-batches.ts';
import { retryBatch } from './retry-batch.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';

export const batchVerbs: Record<string, AdminVerb> = {
  list: {
    usage: '[--account <account>] [--status completed]',
    help: 'lists the batches that have not ended, newest first; with --status those with one status, ended ones included',
    positionals: 0,
    options: ['account', 'status'],
    columns: [
      'id',
      'account',
      'status',
      'lines_total',
      'lines_done',
      'lines_failed',
      'cost',
      'age_seconds',
      'eta_seconds',
    ],
    run: listBatches,
  },
  show: {
    usage: '<batch>',
    help: 'shows everything that is known of it, with the lines that workers have at the moment',
    positionals: 1,
    options: [],
    run: showBatch,
  },
  cancel: {
    usage: '<batch>',
    help: 'runs no more of its lines; those that run are finished and charged, and the results so far are kept',
    positionals: 1,
    options: [],
    run: cancelBatch,
  },
  retry: {
    usage: '<batch>',
    help: 'makes a new batch of its failed lines once it has ended, at the current prices, and shows that batch; the balance must pay for it',
    positionals: 1,
    options: [],
    run: retryFailedLines,
  },
};

/** An id of a batch, as the API shows it. */
const batchId = /^batch_[0-9a-f]{32}$/;

async function listBatches(context: AdminContext): Promise<unknown> {
  const status = readStatus(context.options['status']);
  const account = context.options['account'];
  const accountId = account === undefined ? null : await findAccountId(context, account);
  return describeRows(readBatches(context.redis, accountId, status));
}

function readStatus(given: string | undefined): BatchStatus | null {
  if (given === undefined) return null;
  const status = batchStatuses.find((known) => known === given);
  if (status !== undefined) return status;
  throw new UsageError(`--status must be one of ${batchStatuses.join(', ')}.`);
}

async function* describeRows(batches: AsyncIterable<BatchRecord>): AsyncGenerator<object> {
  for await (const batch of batches) yield describeRow(batch, Date.now());
}

function describeRow(batch: BatchRecord, nowMs: number): object {
  const endedAtMs = hasBatchEnded(batch) ? batch.reachedAtMs[batch.status] : undefined;
  return {
    id: batch.id,
    account: batch.accountId,
    status: batch.status,
    endpoint: batch.endpoint,
    model: batch.model,
    lines_total: batch.lines,
    lines_done: batch.succeeded + batch.failed,
    lines_failed: batch.failed,
    cost: toRubNumber(batch.costNano),
    reserved: toRubNumber(batch.reservedNano),
    created_at: new Date(batch.createdAtMs).toISOString(),
    ended_at: endedAtMs === undefined ? null : new Date(endedAtMs).toISOString(),
    age_seconds: Math.max(0, Math.round((nowMs - batch.createdAtMs) / 1_000)),
    eta_seconds: presentBatch(batch, nowMs).eta_seconds,
  };
}

/** @throws CommandError if there is no such batch */
async function findBatchOwner(context: AdminContext): Promise<{ accountId: string; id: string }> {
  const id = context.positionals[0]!;
  const accountId = batchId.test(id)
    ? await findOwner(context, (account) => redisKeys.batch(account, id))
    : null;
  if (accountId !== null) return { accountId, id };
  throw new CommandError(
    `No batch ${quote(id)}. Batches are kept for 31 days after they end; "batch list" lists those that have not ended.`,
  );
}

async function showBatch(context: AdminContext): Promise<unknown> {
  const { accountId, id } = await findBatchOwner(context);
  return await describeBatch(context.redis, accountId, id);
}

/** Cancels a batch as its owner would. A batch that has ended, or that is stopping, is not changed. */
async function cancelBatch(context: AdminContext): Promise<unknown> {
  const { redis, config, log } = context;
  const { accountId, id } = await findBatchOwner(context);
  await new Batches(redis, config.maxUnfinishedBatches, log).cancel(accountId, id);
  return await describeBatch(redis, accountId, id);
}

/** Retries a batch as its owner would. */
async function retryFailedLines(context: AdminContext): Promise<unknown> {
  const { redis } = context;
  const { accountId, id } = await findBatchOwner(context);
  const batch = await new BatchStore(redis).find(accountId, id);
  if (batch === null) throw noLongerExists(id);
  const retry = await retryBatch(context, batch);
  return await describeBatch(redis, accountId, retry.id);
}

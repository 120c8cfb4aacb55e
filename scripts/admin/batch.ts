import { cancelBatch, describeRow, retryFailedLines, searchBatchOwner } from '../../shared/admin/batches.ts';
import { dryRunCancelBatch } from '../../shared/admin/dry-run-work.ts';
import { describeBatch } from '../../shared/admin/describe-batch.ts';
import type { OwnedId } from '../../shared/admin/list-place.ts';
import { readBatches } from '../../shared/admin/read-batches.ts';
import { batchStatuses } from '../../shared/contract/batch-terms.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';
import type { BatchRecord, BatchStatus } from '../../shared/work/batches/batch-record.ts';
import {
  CommandError,
  UsageError,
  type AdminContext,
  type AdminVerb,
  type ChangeContext,
} from './command.ts';
import { findAccountId } from './find-account.ts';
import { withCatalog } from './with-catalog.ts';
import { withObjects } from './with-objects.ts';

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
    usage: '<batch> [--dry-run]',
    help: 'runs no more of its lines; those that run are finished and charged, and the results so far are kept; --dry-run only counts them',
    positionals: 1,
    options: [],
    flags: ['dry-run'],
    isChange: true,
    run: cancel,
  },
  retry: {
    usage: '<batch>',
    help: 'makes a new batch of its failed lines once it has ended, at the current prices, and shows that batch; the balance must pay for it',
    positionals: 1,
    options: [],
    isChange: true,
    run: retry,
  },
};

async function listBatches(context: AdminContext): Promise<unknown> {
  const status = readStatus(context.options['status']);
  const account = context.options['account'];
  const accountId = account === undefined ? null : await findAccountId(context, account);
  return describeRows(readBatches(context.redis, { accountId, status }));
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

/** @throws CommandError if there is no such batch */
async function findOwner(context: AdminContext): Promise<OwnedId> {
  const id = context.positionals[0]!;
  const owner = await searchBatchOwner(context, id);
  if (owner !== null) return owner;
  throw new CommandError(
    `No batch ${quote(id)}. Batches are kept for 31 days after they end; "batch list" lists those that have not ended.`,
  );
}

async function showBatch(context: AdminContext): Promise<unknown> {
  const { accountId, id } = await findOwner(context);
  return await describeBatch(context.redis, accountId, id);
}

async function cancel(context: ChangeContext): Promise<unknown> {
  const owner = await findOwner(context);
  if (context.flags.has('dry-run')) return await dryRunCancelBatch(context, owner);
  await cancelBatch(context, context.trail, owner);
  return await describeBatch(context.redis, owner.accountId, owner.id);
}

async function retry(context: ChangeContext): Promise<unknown> {
  const owner = await findOwner(context);
  // The process ends if its operator interrupts it.
  const { signal } = new AbortController();
  const created = await withCatalog(context, (catalog) =>
    withObjects(context, (objects) =>
      retryFailedLines({ ...context, catalog, objects, signal }, context.trail, owner),
    ),
  );
  return await describeBatch(context.redis, owner.accountId, created.id);
}

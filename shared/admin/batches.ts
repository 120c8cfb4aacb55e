import { toRubNumber } from '../encoding/money.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { Batches } from '../work/batches/batches.ts';
import { hasBatchEnded, type BatchRecord } from '../work/batches/batch-record.ts';
import { BatchStore } from '../work/batches/batch-store.ts';
import { presentBatch } from '../work/batches/present-batch.ts';
import type { AdminDeps } from './admin-deps.ts';
import { isClientError, type AuditTrail } from './audit-trail.ts';
import { noLongerExists } from './describe-batch.ts';
import { findOwner, searchOwner } from './find-owner.ts';
import type { OwnedId } from './list-place.ts';
import { retryBatch, type RetryBatchDeps } from './retry-batch.ts';

/** An id of a batch, as the API shows it. */
const batchId = /^batch_[0-9a-f]{32}$/;

export const isBatchId = (text: string): boolean => batchId.test(text);

/** Finds the account of a batch. See `findOwner`. @returns null if there is no such batch */
export async function findBatchOwner(
  { redis }: Pick<AdminDeps, 'redis'>,
  id: string,
): Promise<OwnedId | null> {
  const accountId = isBatchId(id) ? await findOwner(redis, id) : null;
  return accountId === null ? null : { accountId, id };
}

/** Finds the account of a batch, for commands. See `searchOwner`. @returns null if there is no such batch */
export async function searchBatchOwner(
  deps: Pick<AdminDeps, 'redis' | 'accounts'>,
  id: string,
): Promise<OwnedId | null> {
  const keyOf = (account: string): string => redisKeys.batch(account, id);
  const accountId = isBatchId(id) ? await searchOwner(deps, id, keyOf) : null;
  return accountId === null ? null : { accountId, id };
}

/** Describes a batch in a row of a list. */
export function describeRow(batch: BatchRecord, nowMs: number) {
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
    lines_not_run: batch.notRun,
    cost: toRubNumber(batch.costNano),
    reserved: toRubNumber(batch.reservedNano),
    created_at: new Date(batch.createdAtMs).toISOString(),
    ended_at: endedAtMs === undefined ? null : new Date(endedAtMs).toISOString(),
    age_seconds: Math.max(0, Math.round((nowMs - batch.createdAtMs) / 1_000)),
    eta_seconds: presentBatch(batch, nowMs).eta_seconds,
  };
}

/** Cancels a batch as its owner would. A batch that has ended, or that is stopping, is not changed. */
export async function cancelBatch(
  { redis, config, log }: Pick<AdminDeps, 'redis' | 'config' | 'log'>,
  trail: AuditTrail,
  { accountId, id }: OwnedId,
): Promise<void> {
  const store = new BatchStore(redis);
  const readStatus = async () => ({
    account: accountId,
    status: (await store.find(accountId, id))?.status ?? null,
  });
  await trail.run(
    { action: 'batch.cancel', id, before: await readStatus() },
    async () => {
      await new Batches(redis, config.maxUnfinishedBatches, log).cancel(accountId, id);
      return await readStatus();
    },
    (after) => after,
  );
}

/** The batch of the failed lines of another one. */
export interface RetriedBatch {
  readonly id: string;
  /** Whether an earlier call created it. */
  readonly isReplay: boolean;
}

/**
 * Retries a batch as its owner would.
 * @param mayRepeat whether the batch that an earlier call has created is returned; otherwise that is an error
 * @throws AppError
 */
export async function retryFailedLines(
  deps: RetryBatchDeps,
  trail: AuditTrail,
  { accountId, id }: OwnedId,
  mayRepeat = false,
): Promise<RetriedBatch> {
  const find = async (): Promise<BatchRecord> => {
    const found = await new BatchStore(deps.redis).find(accountId, id);
    if (found === null) throw noLongerExists(id);
    return found;
  };
  const batch = await find();
  if (mayRepeat && batch.retriedAs !== null) return { id: batch.retriedAs, isReplay: true };
  try {
    const retry = await trail.run(
      { action: 'batch.retry', id, before: { account: accountId, status: batch.status } },
      () => retryBatch(deps, batch),
      (created) => ({ retried_as: created.id }),
    );
    return { id: retry.id, isReplay: false };
  } catch (error) {
    // Of several calls at once, one creates the batch.
    const { retriedAs } = mayRepeat && isClientError(error) ? await find() : batch;
    if (retriedAs === null || !mayRepeat) throw error;
    return { id: retriedAs, isReplay: true };
  }
}

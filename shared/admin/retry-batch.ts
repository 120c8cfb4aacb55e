import type { CatalogStore } from '../catalog/catalog-store.ts';
import { AppError } from '../contract/errors.ts';
import { formatRub } from '../encoding/money.ts';
import { runAdmission, type AdmissionResult } from '../money/admit-script.ts';
import type { Estimate } from '../money/estimate.ts';
import { callRedis } from '../platform/redis/redis-client.ts';
import { createTimeOrderedId } from '../platform/runtime/time-ordered-id.ts';
import type { BatchRecord } from '../work/batches/batch-record.ts';
import { Batches, wasRetried } from '../work/batches/batches.ts';
import { planBatch, type PlanCatalog } from '../work/batches/plan-batch.ts';
import { checkRetriable, retryFileName, retryLines, toRetryOptions } from '../work/batches/retry-lines.ts';
import { FileStore } from '../work/files/file-store.ts';
import { storeLines } from '../work/files/store-lines.ts';
import type { AdminDeps } from './admin-deps.ts';
import { listUpstreamProblems } from './models.ts';
import type { ObjectStore } from '../platform/storage/object-store.ts';

export interface RetryBatchDeps extends Pick<AdminDeps, 'redis' | 'hotAccounts' | 'config' | 'log'> {
  readonly catalog: Pick<CatalogStore, 'current' | 'find' | 'isDisabled'>;
  readonly objects: ObjectStore;
  readonly signal: AbortSignal;
}

/**
 * Creates a batch of the failed lines of a batch, as its caller can, within the limits of its account. It takes none of
 * the account's requests per minute, and nobody's API key is needed.
 * @throws AppError with a text for operators
 */
export async function retryBatch(deps: RetryBatchDeps, batch: BatchRecord): Promise<BatchRecord> {
  checkRetriable(batch);
  if (batch.retriedAs !== null) throw wasRetried(batch.retriedAs);
  const { redis, config, log, catalog, signal } = deps;
  const { accountId } = batch;
  const files = new FileStore(redis);
  const lines = retryLines({ ...deps, files }, batch, signal);
  const input = await storeLines({ ...deps, files }, retryFileName, lines, { accountId, signal }).catch(
    toStoreError,
  );
  try {
    const { work, estimate } = planBatch(toPlanCatalog(catalog), input, toRetryOptions(batch));
    const requestId = createTimeOrderedId();
    await admit(deps, accountId, requestId, estimate);
    const request = { accountId, requestId, userIp: batch.userIp, claimHash: null };
    return await new Batches(redis, config.maxUnfinishedBatches, log).create(request, work);
  } catch (error) {
    // A batch that was created nevertheless, when Redis did not reply, keeps what it needs of the file until its end.
    await files.delete(accountId, input.file.id).catch((failure: unknown) => {
      log.warn({ fileId: input.file.id, err: failure }, 'the input of no batch was not deleted');
    });
    throw error;
  }
}

/** An outage may be one of the object store. */
function toStoreError(error: unknown): never {
  if (error instanceof AppError && error.code === 'service_unavailable')
    throw new AppError('service_unavailable', {
      message: 'Redis or the object store does not respond.',
      expose: true,
      cause: error,
    });
  throw error;
}

/** Without the API keys of an upstream in this process, its models have no routes here. The workers have them. */
const toPlanCatalog = (catalog: RetryBatchDeps['catalog']): PlanCatalog => ({
  current: catalog.current,
  find: (name) => catalog.find(name),
  isActive: (model) => {
    if (model.pricing.type === 'time' && model.routes.length === 0)
      throw rejected(
        `The model ${model.id} is paid by time, so what it may cost depends on its upstream, which cannot be used in ` +
          `this shell: ${listUpstreamProblems(catalog.current, model).join('; ')}.`,
      );
    return !catalog.isDisabled(model);
  },
});

/** Shows that the balance can pay for the batch, as the admission of its caller's request would. */
async function admit(
  { redis, hotAccounts }: RetryBatchDeps,
  accountId: string,
  requestId: string,
  { model, fixedNano, nanoPerUnit, requestedUnits, minUnits, sharePermille }: Estimate,
): Promise<void> {
  const { keyHash } = await hotAccounts.get(accountId);
  const admission = {
    requestId,
    accountId,
    keyHash,
    slots: model.rpmCoefficient,
    slotsTaken: model.rpmCoefficient,
    fixedNano,
    nanoPerUnit,
    requestedUnits,
    minUnits,
    sharePermille,
    freeAllowed: model.pricing.free_requests,
    claim: null,
    isResumable: false,
  };
  const result = await callRedis(() => runAdmission(redis, admission));
  if (result.outcome !== 'ok') throw rejected(explain(result));
}

function explain(result: Exclude<AdmissionResult, { readonly outcome: 'ok' }>): string {
  switch (result.outcome) {
    case 'insufficient':
      return (
        `The lines may cost ${formatRub(result.neededNano)} RUB, and ${formatRub(result.spendableNano)} RUB of the ` +
        "account's balance is available."
      );
    case 'over_budget':
      return (
        `The lines may cost ${formatRub(result.neededNano)} RUB, and ${formatRub(result.budget.leftNano)} RUB of the ` +
        "account's budget is left."
      );
    case 'expired':
      return 'The API key of the account has expired.';
    case 'banned':
      return 'The account is banned.';
    case 'ledger_full':
      return 'The ledger stream is full: entries wait for MongoDB. Try again when workers have written them.';
    case 'unknown':
    case 'revoked':
      return 'The account has just changed. Try again.';
    default:
      throw new TypeError(`an admission without limits was refused: ${result.outcome}`);
  }
}

const rejected = (message: string): AppError => new AppError('validation_failed', { message });

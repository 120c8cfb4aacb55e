import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { formatRub } from '../../shared/encoding/money.ts';
import { runAdmission, type AdmissionResult } from '../../shared/money/admit-script.ts';
import type { Estimate } from '../../shared/money/estimate.ts';
import { callRedis } from '../../shared/platform/redis/redis-client.ts';
import { createTimeOrderedId } from '../../shared/platform/runtime/time-ordered-id.ts';
import type { BatchRecord } from '../../shared/work/batches/batch-record.ts';
import { Batches, wasRetried } from '../../shared/work/batches/batches.ts';
import { planBatch, type PlanCatalog } from '../../shared/work/batches/plan-batch.ts';
import {
  checkRetriable,
  retryFileName,
  retryLines,
  toRetryOptions,
} from '../../shared/work/batches/retry-lines.ts';
import { FileStore } from '../../shared/work/files/file-store.ts';
import { storeLines } from '../../shared/work/files/store-lines.ts';
import { CommandError, type AdminContext } from './command.ts';
import { withCatalog } from './with-catalog.ts';
import { withObjects } from './with-objects.ts';

/**
 * Creates a batch of the failed lines of a batch, as its caller can, within the limits of its account. It takes none of
 * the account's requests per minute, and nobody's API key is needed.
 * @throws CommandError, or AppError with a text for operators too
 */
export async function retryBatch(context: AdminContext, batch: BatchRecord): Promise<BatchRecord> {
  checkRetriable(batch);
  if (batch.retriedAs !== null) throw wasRetried(batch.retriedAs);
  const { redis, config, log } = context;
  const { accountId } = batch;
  const files = new FileStore(redis);
  // The process ends if its operator interrupts it.
  const { signal } = new AbortController();
  return await withCatalog(context, async (catalog) =>
    withObjects(context, async (objects) => {
      const deps = { files, objects, config, log };
      const lines = retryLines(deps, batch, signal);
      const input = await storeLines(deps, retryFileName, lines, { accountId, signal }).catch(toCommandError);
      try {
        const { work, estimate } = planBatch(toPlanCatalog(catalog), input, toRetryOptions(batch));
        const requestId = createTimeOrderedId();
        await admit(context, accountId, requestId, estimate);
        const request = { accountId, requestId, userIp: batch.userIp, claimHash: null };
        return await new Batches(redis, config.maxUnfinishedBatches, log).create(request, work);
      } catch (error) {
        // A batch that was created nevertheless, when Redis did not reply, keeps what it needs of the file until its end.
        await files.delete(accountId, input.file.id).catch((failure: unknown) => {
          log.warn({ fileId: input.file.id, err: failure }, 'the input of no batch was not deleted');
        });
        throw error;
      }
    }),
  );
}

/** An outage may be one of the object store. */
function toCommandError(error: unknown): never {
  if (error instanceof AppError && error.code === 'service_unavailable')
    throw new CommandError('Redis or the object store does not respond.', { cause: error });
  throw error;
}

/** Without the API keys of an upstream in this shell, its models have no routes here. The servers have them. */
const toPlanCatalog = (catalog: CatalogStore): PlanCatalog => ({
  current: catalog.current,
  find: (name) => catalog.find(name),
  isActive: (model) => {
    if (model.pricing.type === 'time' && model.routes.length === 0)
      throw new CommandError(
        `The model ${model.id} is paid by time, so what it may cost depends on its upstream, which cannot be used in ` +
          `this shell: ${(catalog.current.upstreamProblems.get(model.id) ?? []).join('; ')}.`,
      );
    return !catalog.isDisabled(model);
  },
});

/** Shows that the balance can pay for the batch, as the admission of its caller's request would. */
async function admit(
  { redis, hotAccounts }: AdminContext,
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
  if (result.outcome !== 'ok') throw new CommandError(explain(result));
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

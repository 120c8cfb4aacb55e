import { isBatchEndpoint } from '../../../shared/contract/batch-terms.ts';
import { modelTypes } from '../../../shared/contract/models.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { hasBatchEnded } from '../../../shared/work/batches/batch-record.ts';
import { presentBatch } from '../../../shared/work/batches/present-batch.ts';
import { retryLines } from '../../batches/retry-lines.ts';
import { storeLines } from '../../batches/store-lines.ts';
import { preAdmitBody } from '../../admission/pre-admit.ts';
import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticate } from '../../http/middleware/authenticate.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import type { Services } from '../../services.ts';
import { createFromStored } from './create-batch.ts';
import { findBatch, type BatchContext } from './batches.ts';

export const retryBatch = defineEndpoint(
  operations.retryBatch,
  [authenticate, limitCalls],
  (services) => async (context) => {
    // Reading the files takes time, so an account that cannot pay is rejected first.
    await preAdmitBody(services, context, modelTypes);
    const batch = await findBatch(services, context);
    if (!hasBatchEnded(batch)) throw cannotRetry('The batch has not ended. Wait for its end, or cancel it.');
    if (batch.errorFileId === null || !isBatchEndpoint(batch.endpoint))
      throw cannotRetry('The batch has no failed lines.');
    const input = await storeRetried(services, context, batch.errorFileId, batch.inputFileId);
    const { endpoint, metadata, maxCostNano, webhookUrl } = batch;
    const retried = await createFromStored(services, context, input, {
      endpoint,
      metadata,
      maxCostNano,
      webhookUrl,
      resultLifetimeSeconds: batch.resultLifetimeSeconds,
      publicUrl: services.publicUrl,
    });
    context.body = presentBatch(retried, Date.now());
  },
);

async function storeRetried(
  services: Services,
  context: BatchContext,
  errorFileId: string,
  inputFileId: string,
) {
  const lines = retryLines(services, context, { errorFileId, inputFileId });
  return await storeLines(services, context, 'retry.jsonl', lines);
}

const cannotRetry = (message: string): AppError => new AppError('validation_failed', { message });

import { modelTypes } from '../../../shared/contract/models.ts';
import { wasRetried } from '../../../shared/work/batches/batches.ts';
import { presentBatch } from '../../../shared/work/batches/present-batch.ts';
import {
  checkRetriable,
  retryFileName,
  retryLines,
  toRetryOptions,
} from '../../../shared/work/batches/retry-lines.ts';
import { preAdmitBody } from '../../admission/pre-admit.ts';
import { createFromLines } from '../../batches/create-from-file.ts';
import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { limitCalls } from '../../http/middleware/limit-account-calls.ts';
import { readIdempotencyKey } from '../../http/request/idempotency-key.ts';
import { findBatch } from './batches.ts';

export const retryBatch = defineEndpoint(
  operations.retryBatch,
  [authenticateAccount, limitCalls],
  (services) => async (context) => {
    // Reading the files takes time, so an account that cannot pay is rejected first.
    await preAdmitBody(services, context, modelTypes);
    const batch = await findBatch(services, context);
    checkRetriable(batch);
    // With a key, the same call may have created that batch.
    if (batch.retriedAs !== null && readIdempotencyKey(context) === null) throw wasRetried(batch.retriedAs);
    const pieces = retryLines(services, batch, context.state.signal);
    const options = { ...toRetryOptions(batch), publicUrl: services.publicUrl };
    const retry = await createFromLines(services, context, { name: retryFileName, pieces }, options);
    context.body = presentBatch(retry, Date.now());
  },
);

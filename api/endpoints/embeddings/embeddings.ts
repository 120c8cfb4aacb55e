import { operations } from '../../contract/operations.ts';
import type { BudgetShare } from '../../../shared/fairness/fair-budget.ts';
import { noChannel } from '../../../shared/work/queue/job-kinds.ts';
import {
  createEmbeddingJob,
  prepareEmbedding,
  type PreparedEmbedding,
} from '../../../shared/preparing/embeddings/prepare-embedding.ts';
import { presentEmbeddings } from '../../../shared/responses/present-embeddings.ts';
import { decodeResult } from '../../../shared/work/replies/result.ts';
import { admit, type Admitted, type Attached } from '../../admission/admit.ts';
import { preAdmit, precheckBalance } from '../../admission/pre-admit.ts';
import type { EndpointWork } from '../../jobs/durable-jobs.ts';
import { acquireResponseMemory } from '../../requests/replies/response-memory.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateAccount } from '../../account-area/steps/authenticate-account.ts';
import { noteRejections } from '../../http/middleware/note-rejections.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import { readModelRequestOptions } from '../../http/middleware/read-model-request-options.ts';
import { holdText } from '../../http/bodies/hold-text.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { modelRequestOptionsOf, rejectAsyncStream } from '../../http/request/model-request-options.ts';
import { holderOf } from '../../http/request/holder.ts';
import type { Services } from '../../services.ts';
import { awaitResponse } from '../../responses/await-response.ts';
import { createPrepareOptions } from '../prepare-options.ts';
import { awaitJob } from '../../responses/await-job.ts';
import { respondAsync } from '../../responses/respond-async.ts';
import { sendBody } from '../../responses/send-body.ts';

const bytesPerFloat = 4;

export const createEmbedding = defineEndpoint(
  operations.createEmbedding,
  [authenticateAccount, noteRejections, readModelRequestOptions, awaitJob, parseBody],
  (services) => async (context) => {
    rejectAsyncStream(context);
    const prepared = await prepareEmbedding(services, context.state.body, {
      ...createPrepareOptions(services, context),
      holdText: (textBytes) => holdText(services, context, textBytes),
    });
    const { estimate } = prepared;
    const isAsync = modelRequestOptionsOf(context).respondsAsync;
    // A durable job needs no response memory in this process.
    const asyncAdmission = isAsync ? await admit(services, context, estimate) : null;
    const createWork = (admission: Admitted) => createDurableWork(prepared, admission);
    if (asyncAdmission !== null && (await respondAsync(services, context, asyncAdmission, createWork)))
      return;
    const memory = await acquireMemory(services, context, prepared);
    try {
      const admitted = asyncAdmission ?? (await admit(services, context, estimate));
      await respondWithEmbeddings(services, context, prepared, admitted);
    } finally {
      memory?.release();
    }
  },
);

/**
 * Acquires memory for the vectors before money is reserved, so that a request that waits for memory has no money
 * reserved. A request that would be rejected anyway, for lack of money or another reason, does not wait.
 */
async function acquireMemory(
  services: Services,
  context: ApiContext,
  { model, estimate: { fixedNano }, job: { inputs, dimensions } }: PreparedEmbedding,
): Promise<BudgetShare | null> {
  return await acquireResponseMemory(services.responseMemory, holderOf(context).accountId, {
    bytes: inputs.length * (dimensions ?? model.dimensions!.default) * bytesPerFloat,
    signal: context.state.signal,
    response: context.res,
    checkBeforeWaiting: async () => {
      await preAdmit(services, context, model);
      precheckBalance(context, model, fixedNano);
    },
  });
}

const createDurableWork = (prepared: PreparedEmbedding, { request }: Admitted): EndpointWork => ({
  operation: 'embeddings',
  job: createEmbeddingJob(prepared, request, noChannel),
  format: prepared.format,
});

async function respondWithEmbeddings(
  services: Services,
  context: ApiContext,
  { model, job: inputs, format }: PreparedEmbedding,
  admitted: Admitted | Attached,
): Promise<void> {
  const job =
    admitted.outcome === 'attached'
      ? services.jobs.attach(admitted)
      : services.embeddings.add({ request: admitted.request, ...inputs });
  const { bytes, release } = await awaitResponse(job, context.state.signal);
  try {
    const { header, body: vectors } = decodeResult(bytes, 'embedding');
    const response = presentEmbeddings({
      requestId: admitted.requestId,
      model: model.id,
      header,
      vectors,
      format,
    });
    await sendBody(context, response);
  } finally {
    release();
  }
}

import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import type { EmbeddingRequest } from '../../../shared/contract/embeddings.ts';
import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import type { BudgetShare } from '../../../shared/fairness/fair-budget.ts';
import { noChannel } from '../../../shared/work/queue/job-kinds.ts';
import { decodeResult } from '../../../shared/work/replies/result.ts';
import { admit, type Admitted, type Attached } from '../../admission/admit.ts';
import { estimateWhole, findWorstCase, type Estimate } from '../../../shared/money/estimate.ts';
import { preAdmit, preAdmitIfLikelyRejected, precheckBalance } from '../../admission/pre-admit.ts';
import type { EndpointWork } from '../../jobs/durable-jobs.ts';
import { acquireResponseMemory } from '../../requests/replies/response-memory.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticate } from '../../http/middleware/authenticate.ts';
import { noteRejections } from '../../http/middleware/note-rejections.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import { readModelRequestOptions } from '../../http/middleware/read-model-request-options.ts';
import { presentEmbeddings } from '../../../shared/responses/present-embeddings.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { modelRequestOptionsOf, rejectAsyncStream } from '../../http/request/model-request-options.ts';
import { keyHolderOf } from '../../http/request/holder.ts';
import type { Services } from '../../services.ts';
import { awaitResponse } from '../../responses/await-response.ts';
import { countInputs, findInputLimit } from '../../../shared/preparing/embeddings/count-inputs.ts';
import { createCountingTurn } from '../counting-turn.ts';
import { findModel } from '../../../shared/preparing/find-model.ts';
import { readInputs } from './read-inputs.ts';
import { awaitJob } from '../../responses/await-job.ts';
import { respondAsync } from '../../responses/respond-async.ts';
import { sendBody } from '../../responses/send-body.ts';

const bytesPerFloat = 4;

/** Most vendors add either two tokens to each input, one before and one after it, or none. */
const defaultSpecialTokens = 2;

export const createEmbedding = defineEndpoint(
  operations.createEmbedding,
  [authenticate, noteRejections, readModelRequestOptions, awaitJob, parseBody],
  (services) => async (context) => {
    const body = context.state.body;
    rejectAsyncStream(context);
    const model = findModel(services.catalog, body.model, operations.createEmbedding.modelTypes);
    const dimensions = chooseDimensions(body, model);
    precheckBalance(context, model);
    await preAdmitIfLikelyRejected(services, context, model);
    const countingTurn = createCountingTurn(services, context, model);
    const limit = findInputLimit(model);
    const read = await readInputs(services, context, body.input, { limit, countingTurn });
    const tokens = await countInputs(read, model, { limit, countingTurn });
    const counted = { model, dimensions, inputs: read.texts, inputTokens: tokens.counted };
    const estimate = estimateInputs(counted, tokens.mostTokens, body.user ?? null);
    const isAsync = modelRequestOptionsOf(context).respondsAsync;
    // A durable job needs no response memory in this process.
    const asyncAdmission = isAsync ? await admit(services, context, estimate) : null;
    const createWork = (admission: Admitted) => createDurableWork(body, counted, admission);
    if (asyncAdmission !== null && (await respondAsync(services, context, asyncAdmission, createWork)))
      return;
    const memory = await acquireMemory(services, context, counted, estimate);
    try {
      const admitted = asyncAdmission ?? (await admit(services, context, estimate));
      await respondWithEmbeddings(services, context, {
        counted,
        admitted,
        format: body.encoding_format ?? 'float',
      });
    } finally {
      memory?.release();
    }
  },
);

interface CountedInputs {
  readonly model: CatalogModel;
  readonly dimensions: number | null;
  readonly inputs: readonly string[];
  readonly inputTokens: readonly number[];
}

function estimateInputs(
  { model, inputs, inputTokens }: CountedInputs,
  mostTokens: number,
  user: string | null,
): Estimate {
  const promptTokens = inputTokens.reduce((a, b) => a + b, 0);
  const worst = findWorstCase(model, {
    // If the catalog does not specify how many tokens a vendor adds, reserve money for the default number.
    promptTokens: mostTokens + (model.specialTokens === null ? defaultSpecialTokens * inputs.length : 0),
    characters: inputs.reduce((sum, text) => sum + text.length, 0),
  });
  return estimateWhole({ model, promptTokens, user }, worst, 0);
}

/**
 * Acquires memory for the vectors before money is reserved, so that a request that waits for memory has no money
 * reserved. A request that would be rejected anyway, for lack of money or another reason, does not wait.
 */
async function acquireMemory(
  services: Services,
  context: ApiContext,
  { model, dimensions, inputs }: CountedInputs,
  { fixedNano }: Estimate,
): Promise<BudgetShare | null> {
  return await acquireResponseMemory(services.responseMemory, keyHolderOf(context).accountId, {
    bytes: inputs.length * (dimensions ?? model.dimensions!.default) * bytesPerFloat,
    signal: context.state.signal,
    response: context.res,
    checkBeforeWaiting: async () => {
      await preAdmit(services, context, model);
      precheckBalance(context, model, fixedNano);
    },
  });
}

function createDurableWork(
  body: EmbeddingRequest,
  { model, dimensions, inputs, inputTokens }: CountedInputs,
  { request }: Admitted,
): EndpointWork {
  const parts = [{ request, inputs, inputTokens, dimensions }];
  return {
    operation: 'embeddings',
    job: { v: 1, kind: 'embedding', model: model.id, replyChannel: noChannel, parts },
    format: body.encoding_format ?? 'float',
  };
}

interface AdmittedInputs {
  readonly counted: CountedInputs;
  readonly admitted: Admitted | Attached;
  readonly format: 'float' | 'base64';
}

async function respondWithEmbeddings(
  services: Services,
  context: ApiContext,
  { counted, admitted, format }: AdmittedInputs,
): Promise<void> {
  const { model, dimensions, inputs, inputTokens } = counted;
  const job =
    admitted.outcome === 'attached'
      ? services.jobs.attach(admitted)
      : services.embeddings.add({ request: admitted.request, inputs, inputTokens, dimensions });
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

/** Returns the number of dimensions to request; null for the model's default. */
function chooseDimensions({ dimensions }: EmbeddingRequest, model: CatalogModel): number | null {
  const spec = model.dimensions;
  if (spec === null) throw new AppError('internal_error', { message: `${model.id} has no dimensions` });
  if (dimensions === null || dimensions === undefined || dimensions === spec.default) return null;
  const invalidDimensions = (msg: string): AppError => invalidField(['body', 'dimensions'], msg);
  if (!spec.adjustable)
    throw invalidDimensions(`${model.id} always returns ${spec.default} dimensions: omit this field`);
  if (spec.choices !== undefined && !spec.choices.includes(dimensions)) {
    throw invalidDimensions(`must be one of: ${spec.choices.join(', ')}`);
  }
  const max = spec.max ?? spec.default;
  if (dimensions > max) throw invalidDimensions(`must be <= ${max}`);
  return dimensions;
}

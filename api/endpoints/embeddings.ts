import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { EmbeddingRequest } from '../../shared/contract/embeddings.ts';
import { AppError, invalidField } from '../../shared/contract/errors.ts';
import { operations } from '../../shared/contract/operations.ts';
import type { BudgetShare } from '../../shared/fairness/fair-budget.ts';
import { computeWorstCase, noUsage } from '../../shared/pricing/cost.ts';
import { noChannel } from '../../shared/reply/reply-channel.ts';
import { decodeResult } from '../../shared/reply/result.ts';
import type { DurableWork } from '../dispatch/durable-jobs.ts';
import { acquireResponseMemory } from '../dispatch/response-memory.ts';
import { admit, type Admitted, type Attached, type Estimate } from '../middleware/admit.ts';
import { holderOf } from '../middleware/authenticate.ts';
import { callerSignal } from '../middleware/caller-signal.ts';
import { creationOptionsOf } from '../middleware/creation-options.ts';
import { preAdmit, preAdmitDoubtful, precheckBalance } from '../middleware/pre-admit.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { presentEmbeddings } from '../present/embeddings.ts';
import type { Services } from '../services.ts';
import { cancelWhenGone } from './cancel-when-gone.ts';
import { countInputs, findInputLimit } from './count-inputs.ts';
import { createCountingTurn } from './counting-turn.ts';
import { findModel } from './find-model.ts';
import { respondAsync } from './respond-async.ts';
import { readInputs } from './read-inputs.ts';
import { sendBody } from './send-body.ts';

const bytesPerFloat = 4;

/** What most vendors add to an input: a mark before it and one behind it, or none. */
const usualSpecialTokens = 2;

export function createEmbeddings(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const body = context.state.body as EmbeddingRequest;
    const model = findModel(services, body.model, operations.createEmbedding.modelTypes);
    const dimensions = chooseDimensions(body, model);
    precheckBalance(context, model);
    await preAdmitDoubtful(services, context, model);
    const turn = createCountingTurn(services, context, model);
    const limit = findInputLimit(model);
    const read = await readInputs(services, context, body.input, { limit, turn });
    const inputTokens = await countInputs(read, model, { limit, turn });
    const counted = { model, dimensions, inputs: read.texts, inputTokens };
    const estimate = estimateInputs(counted, body.user ?? null);
    const isAsync = creationOptionsOf(context).respondsAsync;
    // A job holds no memory of this process.
    const early = isAsync ? await admit(services, context, estimate) : null;
    const createWork = (first: Admitted) => createDurableWork(body, counted, first);
    if (early !== null && (await respondAsync(services, context, early, createWork))) return;
    const memory = await acquireMemory(services, context, counted, estimate);
    try {
      await answerInputs(services, context, counted, early ?? (await admit(services, context, estimate)));
    } finally {
      memory?.release();
    }
  };
}

interface CountedInputs {
  readonly model: CatalogModel;
  readonly dimensions: number | null;
  readonly inputs: readonly string[];
  readonly inputTokens: readonly number[];
}

function estimateInputs({ model, inputs, inputTokens }: CountedInputs, user: string | null): Estimate {
  const promptTokens = inputTokens.reduce((a, b) => a + b, 0);
  const worst = computeWorstCase(model.pricing, {
    ...noUsage,
    // Where the catalog does not say what a vendor adds, it is reserved for, and not counted as ours.
    promptTokens: promptTokens + (model.specialTokens === null ? usualSpecialTokens * inputs.length : 0),
    characters: inputs.reduce((sum, text) => sum + text.length, 0),
    durationMs: Math.max(0, ...model.routes.map((route) => route.upstream.timeoutMs)),
  });
  return {
    model,
    promptTokens,
    fixedNano: worst.fixedNano,
    nanoPerUnit: 0n,
    wantedUnits: 0,
    leastUnits: 0,
    sharePermille: 1_000,
    user,
  };
}

/**
 * Memory for the vectors, before money is reserved for them: a request that waits must not hold any. One that would be
 * refused, for lack of money or for another reason, does not wait.
 */
async function acquireMemory(
  services: Services,
  context: ApiContext,
  { model, dimensions, inputs }: CountedInputs,
  { fixedNano }: Estimate,
): Promise<BudgetShare | null> {
  return await acquireResponseMemory(services.responseMemory, holderOf(context).accountId, {
    bytes: inputs.length * (dimensions ?? model.dimensions!.default) * bytesPerFloat,
    signal: callerSignal(context.res),
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
): Omit<DurableWork, 'webhookUrl'> {
  const parts = [{ request, inputs, inputTokens, dimensions }];
  return {
    operation: 'embeddings',
    job: { v: 1, kind: 'embedding', model: model.id, replyChannel: noChannel, parts },
    format: body.encoding_format ?? 'float',
  };
}

async function answerInputs(
  services: Services,
  context: ApiContext,
  { model, dimensions, inputs, inputTokens }: CountedInputs,
  admitted: Admitted | Attached,
): Promise<void> {
  const body = context.state.body as EmbeddingRequest;
  const job =
    admitted.outcome === 'attached'
      ? services.jobs.attach(admitted)
      : services.embeddings.add({ request: admitted.request, inputs, inputTokens, dimensions });
  const { bytes, giveBack } = await cancelWhenGone(context, job);
  try {
    const { header, body: vectors } = decodeResult(bytes, 'embedding');
    const answer = presentEmbeddings({
      requestId: admitted.requestId,
      model: model.id,
      header,
      vectors,
      format: body.encoding_format ?? 'float',
    });
    await sendBody(context, answer);
  } finally {
    giveBack();
  }
}

/** Null where the model's own number is wanted. */
function chooseDimensions({ dimensions }: EmbeddingRequest, model: CatalogModel): number | null {
  const own = model.dimensions;
  if (own === null) throw new AppError('internal_error', { message: `${model.id} has no dimensions` });
  if (dimensions === null || dimensions === undefined || dimensions === own.default) return null;
  const refuse = (msg: string): AppError => invalidField(['body', 'dimensions'], msg);
  if (!own.adjustable)
    throw refuse(`${model.id} always gives ${own.default} dimensions; leave the field out`);
  if (own.choices !== undefined && !own.choices.includes(dimensions)) {
    throw refuse(`must be one of: ${own.choices.join(', ')}`);
  }
  const max = own.max ?? own.default;
  if (dimensions > max) throw refuse(`must be <= ${max}`);
  return dimensions;
}

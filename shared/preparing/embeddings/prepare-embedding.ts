import { defaultSpecialTokens } from '../../catalog/added-tokens.ts';
import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import { createEmbedding, type EmbeddingRequest } from '../../contract/embeddings.ts';
import { AppError, invalidField } from '../../contract/errors.ts';
import type { AdmittedRequest } from '../../money/admitted-request.ts';
import { estimateWhole, findWorstCase, type Estimate } from '../../money/estimate.ts';
import type { EmbeddingJob, EmbeddingPart } from '../../work/queue/job-kinds.ts';
import { findModel } from '../find-model.ts';
import { createCountingTurn, type ModelCatalog, type Prepared, type PrepareOptions } from '../preparation.ts';
import { countInputs, findInputLimit } from './count-inputs.ts';
import { readInputs, type ReadingOptions } from './read-inputs.ts';

export type PreparedInputs = Omit<EmbeddingPart, 'request'>;

export interface PreparedEmbedding extends Prepared<PreparedInputs> {
  /** How the response writes vectors. */
  readonly format: 'float' | 'base64';
}

export type PrepareEmbeddingOptions = PrepareOptions & Pick<ReadingOptions, 'holdText'>;

/**
 * Prepares an embedding request for admission.
 * @param body valid according to the operation's schema
 * @throws AppError `model_not_found`, `model_disabled`, `validation_failed`, `content_too_long`, `payload_too_large`;
 * the errors of the checks; the signal's reason
 */
export async function prepareEmbedding(
  { catalog }: { readonly catalog: ModelCatalog },
  body: EmbeddingRequest,
  options: PrepareEmbeddingOptions,
): Promise<PreparedEmbedding> {
  const model = findModel(catalog, body.model, createEmbedding.modelTypes);
  const dimensions = chooseDimensions(body, model);
  await options.checkEarly?.(model, false);
  const countingTurn = createCountingTurn(options, model);
  const limit = findInputLimit(model);
  const read = await readInputs(body.input, { limit, countingTurn, holdText: options.holdText });
  const { counted, mostTokens } = await countInputs(read, model, { limit, countingTurn });
  const job = { inputs: read.texts, inputTokens: counted, dimensions };
  return {
    model,
    estimate: estimateInputs(model, job, mostTokens, body.user ?? null),
    job,
    format: body.encoding_format ?? 'float',
  };
}

/** Creates the job of a single request. */
export const createEmbeddingJob = (
  { model, job }: Pick<PreparedEmbedding, 'model' | 'job'>,
  request: AdmittedRequest,
  replyChannel: string,
): EmbeddingJob => ({
  v: 1,
  kind: 'embedding',
  model: model.id,
  replyChannel,
  parts: [{ request, ...job }],
});

function estimateInputs(
  model: CatalogModel,
  { inputs, inputTokens }: PreparedInputs,
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

import { finishRequest } from '../../shared/billing/finish-request.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { noUsage } from '../../shared/pricing/cost.ts';
import type { EmbeddingJob, EmbeddingPart } from '../../shared/queue/job-kinds.ts';
import { encodeResult, type EmbeddingResultHeader } from '../../shared/reply/result.ts';
import {
  dropVectors,
  type EmbeddedInput,
  type EmbeddingAnswerOfAsk,
  type FailedInput,
  type InputOutcome,
} from '../embeddings/embedding-work.ts';
import {
  describeFailure,
  isModelsFailure,
  isReplaced,
  notSettled,
  type JobDependencies,
  type RequestRun,
} from './job-context.ts';
import { sendResult } from './send-result.ts';

/**
 * Runs a batch: the inputs of its parts wait in line with those of all other batches here, and each part is settled and
 * answered for itself, as soon as it has its vectors. Never rejects.
 * @param runs one for each part, in order
 */
export async function runEmbedding(
  dependencies: JobDependencies,
  { model, dimensions, parts }: EmbeddingJob,
  runs: readonly RequestRun[],
): Promise<void> {
  await Promise.all(
    parts.map(async (part, i) => {
      const { request, inputs, inputTokens } = part;
      const run = runs[i]!;
      const { signal, log } = run;
      const { accountId, user, deadlineAtMs } = request;
      const ask = { accountId, user, inputs, inputTokens, signal, deadlineAtMs, log };
      try {
        const answer = await dependencies.embeddings.embed(model, dimensions, ask);
        try {
          await answerPart(dependencies, part, run, answer);
        } finally {
          // What was sent was copied on its way.
          dropVectors(answer);
        }
      } catch (error) {
        // The others of the batch go on.
        log.error({ err: error }, 'an embedding could not be settled');
        run.reply.error(notSettled);
      }
    }),
  );
}

/**
 * Vectors of different lengths make no answer. It takes a vendor that changed its model, or routes to different ones, for
 * one request to be given such.
 */
function findMixture(outcomes: readonly InputOutcome[]): FailedInput | undefined {
  const lengths = new Set(outcomes.map((one) => ('error' in one ? null : one.dimensions)));
  return lengths.size > 1 ? { error: new AppError('upstream_error') } : undefined;
}

async function answerPart(
  dependencies: JobDependencies,
  { request, inputs }: EmbeddingPart,
  run: RequestRun,
  { outcomes, reachedModel }: EmbeddingAnswerOfAsk,
): Promise<void> {
  const failed = outcomes.find((outcome) => 'error' in outcome) ?? findMixture(outcomes);
  if (failed !== undefined && isReplaced(run)) return;
  const error = failed === undefined ? null : describeFailure(failed.error);
  if (error?.code === 'internal_error') run.log.error({ err: failed?.error }, 'embedding failed');
  const embedded = outcomes.filter((outcome) => 'vector' in outcome);
  const sum = (of: (one: EmbeddedInput) => number): number =>
    embedded.reduce((total, one) => total + of(one), 0);
  const promptTokens = error === null ? sum((one) => one.tokens) : request.promptTokens;
  const receipt = await finishRequest(dependencies, request, {
    usage: {
      ...noUsage,
      promptTokens,
      characters: inputs.reduce((total, text) => total + text.length, 0),
      durationMs: sum((one) => one.billedMs),
    },
    counted: error !== null || embedded.some((one) => one.counted),
    error,
    charged: error === null,
    reachedModel: reachedModel || isModelsFailure(error),
  });
  if (error !== null) {
    run.reply.error(error);
    return;
  }
  const header: EmbeddingResultHeader = {
    created: Math.floor(Date.now() / 1_000),
    costNano: receipt.costNano.toString(),
    free: receipt.free,
    durationMs: receipt.durationMs,
    promptTokens,
    dimensions: embedded[0]!.dimensions,
  };
  const parts = encodeResult(
    header,
    embedded.map((one) => one.vector),
  );
  await sendResult(dependencies, request, run, parts);
}

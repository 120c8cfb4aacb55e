import { finishRequest } from '../../shared/billing/finish-request.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { noUsage } from '../../shared/pricing/cost.ts';
import { findEmbeddingBounds } from '../../shared/pricing/usage-bounds.ts';
import type { AdmittedRequest, EmbeddingJob, EmbeddingPart } from '../../shared/queue/job-kinds.ts';
import { encodeResult, type EmbeddingResultHeader } from '../../shared/reply/result.ts';
import {
  dropVectors,
  isRefusal,
  type EmbeddedInput,
  type EmbeddingAnswerOfAsk,
  type FailedInput,
  type InputOutcome,
} from '../embeddings/embedding-work.ts';
import {
  createVendorSignal,
  describeFailure,
  isModelsFailure,
  isReplaced,
  notSettled,
  type JobDependencies,
  type RequestRun,
} from './job-context.ts';
import { logImplausible } from './plausible-usage.ts';
import { sendResult } from './send-result.ts';

/**
 * Runs a batch: the inputs of its parts wait in line with those of all other batches here, and each part is settled and
 * answered for itself, as soon as it has its vectors. Never rejects.
 * @param runs one for each part, in order
 */
export async function runEmbedding(
  dependencies: JobDependencies,
  { model, parts }: EmbeddingJob,
  runs: readonly RequestRun[],
): Promise<void> {
  await Promise.all(
    parts.map(async (part, i) => {
      const { request, dimensions, inputs, inputTokens } = part;
      const run = runs[i]!;
      const { signal, stopping, log, begin, progress } = run;
      // Listens before the request itself does: what must end at once has not left.
      const stopSignal = createVendorSignal(run, { outlastsCancelling: true });
      const { accountId, user, deadlineAtMs } = request;
      // By the price that it was admitted at: the catalog may have another by now.
      const isPaidByTime = request.pricing.type === 'time';
      const whose = { accountId, user, isPaidByTime };
      const ask = {
        ...whose,
        dimensions,
        inputs,
        inputTokens,
        signal,
        stopSignal,
        stopping,
        deadlineAtMs,
        log,
        ...(begin && { begin }),
        ...(progress && { progress }),
      };
      try {
        const answer = await dependencies.embeddings.embed(model, ask);
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

/** Whether the vendor can have counted so many tokens: each input has at most the model's context. */
function checkPlausible(
  { catalog }: JobDependencies,
  { model }: AdmittedRequest,
  { log }: RequestRun,
  { reported, inputs }: { readonly reported: number; readonly inputs: number },
): boolean {
  const known = catalog.find(model);
  if (known === undefined) return true;
  const bounds = findEmbeddingBounds(known.context, inputs);
  if (reported <= bounds.promptTokens) return true;
  logImplausible(log, { model }, { promptTokens: reported }, bounds);
  return false;
}

/** How a request ended: null where it has all of its vectors. */
interface Failure {
  readonly error: unknown;
  /** Whether it is the caller's doing, so that what a model did for the request is paid for all the same. */
  readonly isCallers: boolean;
}

/** Of several failures a refusal is told: the others would have been worth another try, and this one is not. */
function findFailure({ outcomes, hasLeft }: EmbeddingAnswerOfAsk, { signal }: RequestRun): Failure | null {
  if (hasLeft) return { error: signal.reason as unknown, isCallers: true };
  const failed = outcomes.filter((outcome) => 'error' in outcome);
  const refused = failed.find(({ error }) => isRefusal(error));
  if (refused !== undefined) return { ...refused, isCallers: true };
  const other = failed[0] ?? findMixture(outcomes);
  return other === undefined ? null : { ...other, isCallers: false };
}

/** What the caller is told, and of a refused request what it paid for. */
function describePart({ error }: Failure, embedded: number, all: number): ReturnType<typeof describeFailure> {
  const { code, message } = describeFailure(error);
  if (!isRefusal(error) || embedded === 0) return { code, message };
  const told = `${embedded} of ${all} inputs ${embedded === 1 ? 'was' : 'were'} embedded, and charged.`;
  return { code, message: `${message} (${told})` };
}

async function answerPart(
  dependencies: JobDependencies,
  { request, inputs, inputTokens }: EmbeddingPart,
  run: RequestRun,
  answer: EmbeddingAnswerOfAsk,
): Promise<void> {
  const { outcomes, reachedModel } = answer;
  const failure = findFailure(answer, run);
  if (failure !== null && isReplaced(run)) return;
  const embedded = outcomes.filter((outcome) => 'vector' in outcome);
  const error = failure === null ? null : describePart(failure, embedded.length, inputs.length);
  if (error?.code === 'internal_error') run.log.error({ err: failure?.error }, 'embedding failed');
  const sum = (of: (one: EmbeddedInput) => number): number =>
    embedded.reduce((total, one) => total + of(one), 0);
  // A failure of others costs nothing, whatever was embedded before it.
  const charged = failure === null || (failure.isCallers && embedded.length > 0);
  const paid = inputs.flatMap((_, i) => (!charged || 'vector' in outcomes[i]! ? [i] : []));
  const reported = sum((one) => one.tokens);
  const isReported = charged && checkPlausible(dependencies, request, run, { reported, inputs: paid.length });
  const promptTokens = isReported ? reported : paid.reduce((total, i) => total + inputTokens[i]!, 0);
  const outcome = {
    usage: {
      ...noUsage,
      promptTokens,
      characters: paid.reduce((total, i) => total + inputs[i]!.length, 0),
      durationMs: sum((one) => one.billedMs),
    },
    counted: !isReported || embedded.some((one) => one.counted),
    error,
    charged,
    reachedModel: reachedModel || isModelsFailure(error),
  };
  await finishRequest(dependencies, request, outcome, async (receipt) => {
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
    return await sendResult(dependencies, request, run, parts);
  });
  if (error !== null) run.reply.error(error);
}

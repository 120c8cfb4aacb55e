// decision 0028
import { finishRequest } from '../../shared/work/settlement/finish-request.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { noUsage } from '../../shared/catalog/cost.ts';
import { findEmbeddingBounds } from '../../shared/catalog/usage-bounds.ts';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import type { EmbeddingJob, EmbeddingPart } from '../../shared/work/queue/job-kinds.ts';
import { encodeResult, type EmbeddingResultHeader } from '../../shared/work/replies/result.ts';
import {
  dropVectors,
  isInputRejection,
  type EmbeddedInput,
  type EmbeddingOutcomes,
  type FailedInput,
  type InputOutcome,
} from '../embeddings/embedding-task.ts';
import {
  createVendorSignal,
  describeFailure,
  isModelFailure,
  isReplaced,
  notSettled,
  type JobDeps,
  type RequestRun,
} from './job-context.ts';
import { logImplausible } from './plausible-usage.ts';
import { sendResult } from './send-result.ts';

/**
 * Runs a batch. The inputs of its parts wait in the scheduler with those of all other batches of this process. Each
 * part is settled and gets its response separately, as soon as it has its vectors. Never rejects.
 * @param runs one per part, in order
 */
export async function runEmbedding(
  dependencies: JobDeps,
  { model, parts }: EmbeddingJob,
  runs: readonly RequestRun[],
): Promise<void> {
  await Promise.all(
    parts.map(async (part, i) => {
      const { request, dimensions, inputs, inputTokens } = part;
      const run = runs[i]!;
      const { signal, stopping, log, begin, progress } = run;
      // Create this before the scheduler listens to the signal, so that a request that must end immediately is not
      // mistaken for one whose caller disconnected.
      const stopSignal = createVendorSignal(run, { outlastsCancellation: true });
      const { accountId, user, deadlineAtMs } = request;
      // Use the pricing at admission, because the catalog may have changed since.
      const isPaidByTime = request.pricing.type === 'time';
      const identity = { accountId, user, isPaidByTime };
      const task = {
        ...identity,
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
        const result = await dependencies.embeddings.embed(model, task);
        try {
          await settlePart(dependencies, part, run, result);
        } finally {
          // The vectors were copied when they were sent.
          dropVectors(result);
        }
      } catch (error) {
        // A failure in one part does not affect the others.
        log.error({ err: error }, 'settling an embedding failed');
        run.reply.error(notSettled);
      }
    }),
  );
}

/**
 * Returns a failure if the vectors of one request have different lengths. That happens if a vendor changed its model,
 * or if routes lead to different models.
 */
function findMixedLengths(outcomes: readonly InputOutcome[]): FailedInput | undefined {
  const lengths = new Set(outcomes.map((one) => ('error' in one ? null : one.dimensions)));
  return lengths.size > 1 ? { error: new AppError('upstream_error') } : undefined;
}

/** Whether the reported tokens are possible: each input has at most the model's context. Logs a report that is not. */
function isPlausibleReport(
  { catalog }: JobDeps,
  { model }: AdmittedRequest,
  { log }: RequestRun,
  { reported, inputs }: { readonly reported: number; readonly inputs: number },
): boolean {
  const knownModel = catalog.find(model);
  if (knownModel === undefined) return true;
  const bounds = findEmbeddingBounds(knownModel.context, inputs);
  if (reported <= bounds.promptTokens) return true;
  logImplausible(log, { model }, { promptTokens: reported }, bounds);
  return false;
}

/** How a request failed. */
interface Failure {
  readonly error: unknown;
  /** Whether the caller caused it. If so, the caller is still charged for the work that a model did. */
  readonly isCausedByCaller: boolean;
}

/** Prefers a rejection to other failures: others suggest a retry, which would be rejected again. */
function findFailure(
  { outcomes, hasDisconnected }: EmbeddingOutcomes,
  { signal }: RequestRun,
): Failure | null {
  if (hasDisconnected) return { error: signal.reason as unknown, isCausedByCaller: true };
  const failedOutcomes = outcomes.filter((outcome) => 'error' in outcome);
  const rejected = failedOutcomes.find(({ error }) => isInputRejection(error));
  if (rejected !== undefined) return { ...rejected, isCausedByCaller: true };
  const otherFailure = failedOutcomes[0] ?? findMixedLengths(outcomes);
  return otherFailure === undefined ? null : { ...otherFailure, isCausedByCaller: false };
}

/** Returns the error for the caller, including how many inputs were charged if the request was rejected. */
function describePartFailure(
  { error }: Failure,
  embedded: number,
  all: number,
): ReturnType<typeof describeFailure> {
  const { code, message } = describeFailure(error);
  if (!isInputRejection(error) || embedded === 0) return { code, message };
  const summary = `${embedded} of ${all} inputs ${embedded === 1 ? 'was' : 'were'} embedded and charged.`;
  return { code, message: `${message} (${summary})` };
}

async function settlePart(
  dependencies: JobDeps,
  { request, inputs, inputTokens }: EmbeddingPart,
  run: RequestRun,
  result: EmbeddingOutcomes,
): Promise<void> {
  const { outcomes, reachedModel } = result;
  const failure = findFailure(result, run);
  if (failure !== null && isReplaced(run)) return;
  const embedded = outcomes.filter((outcome) => 'vector' in outcome);
  const error = failure === null ? null : describePartFailure(failure, embedded.length, inputs.length);
  if (error?.code === 'internal_error') run.log.error({ err: failure?.error }, 'embedding failed');
  const sum = (of: (one: EmbeddedInput) => number): number =>
    embedded.reduce((total, one) => total + of(one), 0);
  // A request that failed for a reason that the caller did not cause is not charged, even if some inputs were embedded.
  const charged = failure === null || (failure.isCausedByCaller && embedded.length > 0);
  const countedInputs = inputs.flatMap((_, i) => (!charged || 'vector' in outcomes[i]! ? [i] : []));
  const reported = sum((one) => one.tokens);
  const isReported =
    charged && isPlausibleReport(dependencies, request, run, { reported, inputs: countedInputs.length });
  const promptTokens = isReported ? reported : countedInputs.reduce((total, i) => total + inputTokens[i]!, 0);
  const outcome = {
    usage: {
      ...noUsage,
      promptTokens,
      characters: countedInputs.reduce((total, i) => total + inputs[i]!.length, 0),
      durationMs: sum((one) => one.billedMs),
    },
    counted: !isReported || embedded.some((one) => one.counted),
    error,
    charged,
    reachedModel: reachedModel || isModelFailure(error),
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

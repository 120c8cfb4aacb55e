import { AppError } from '../../shared/contract/errors.ts';
import { noUsage } from '../../shared/catalog/cost.ts';
import { addCosts } from '../routing/vendor-cost.ts';
import { findEmbeddingBounds } from '../../shared/catalog/usage-bounds.ts';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import type { EmbeddingPart } from '../../shared/work/queue/job-kinds.ts';
import type { RequestOutcome } from '../../shared/work/settlement/finish-request.ts';
import {
  isInputRejection,
  type EmbeddedInput,
  type EmbeddingOutcomes,
  type FailedInput,
  type InputOutcome,
} from '../embeddings/embedding-task.ts';
import {
  describeFailure,
  findFailureReason,
  isModelFailure,
  type JobDeps,
  type RequestRun,
} from './job-context.ts';
import { logImplausible } from './plausible-usage.ts';

/**
 * Returns a failure if the vectors of one request have different lengths. That happens if a vendor changed its model,
 * or if routes lead to different models.
 */
function findMixedLengths(outcomes: readonly InputOutcome[]): FailedInput | undefined {
  if (outcomes.length < 2) return undefined;
  const lengths = new Set(outcomes.map((one) => ('error' in one ? null : one.dimensions)));
  return lengths.size > 1
    ? {
        error: new AppError('upstream_error', {
          reason: 'the vectors of one request have different lengths',
        }),
      }
    : undefined;
}

/** Whether the reported tokens are possible: each input has at most the model's context. Logs a report that is not. */
function isPlausibleReport(
  { catalog }: Pick<JobDeps, 'catalog'>,
  { model }: AdmittedRequest,
  { log }: Pick<RequestRun, 'log'>,
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
export function findFailure(
  { outcomes, hasDisconnected }: EmbeddingOutcomes,
  { signal }: Pick<RequestRun, 'signal'>,
): Failure | null {
  if (hasDisconnected) return { error: signal.reason as unknown, isCausedByCaller: true };
  let failed: FailedInput | undefined;
  for (const outcome of outcomes) {
    if (!('error' in outcome)) continue;
    if (isInputRejection(outcome.error)) return { error: outcome.error, isCausedByCaller: true };
    failed ??= outcome;
  }
  const otherFailure = failed ?? findMixedLengths(outcomes);
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

/** What a request's inputs have used, and which of them have vectors. */
export interface MeasuredInputs {
  readonly outcome: RequestOutcome;
  readonly embedded: readonly EmbeddedInput[];
  readonly promptTokens: number;
}

/** Measures what a request is charged for, and how it ends. */
export function measureInputs(
  dependencies: Pick<JobDeps, 'catalog'>,
  { request, inputs, inputTokens }: EmbeddingPart,
  run: Pick<RequestRun, 'signal' | 'log'>,
  result: EmbeddingOutcomes,
): MeasuredInputs {
  const { outcomes, reachedModel } = result;
  const failure = findFailure(result, run);
  const embedded = outcomes.filter((outcome) => 'vector' in outcome);
  const error = failure === null ? null : describePartFailure(failure, embedded.length, inputs.length);
  if (error?.code === 'internal_error') run.log.error({ err: failure?.error }, 'embedding failed');
  // A request that failed for a reason that the caller did not cause is not charged, even if some inputs were embedded.
  const charged = failure === null || (failure.isCausedByCaller && embedded.length > 0);
  const sums = { inputs: 0, reported: 0, ownTokens: 0, characters: 0, billedMs: 0, counted: false };
  let vendorCostNano: bigint | null = 0n;
  for (let i = 0; i < inputs.length; i++) {
    const one = outcomes[i];
    const vector = one !== undefined && 'vector' in one ? one : null;
    if (vector !== null) {
      sums.reported += vector.tokens;
      sums.billedMs += vector.billedMs;
      sums.counted ||= vector.counted;
      vendorCostNano = addCosts(vendorCostNano, vector.vendorCostNano);
    }
    if (charged && vector === null) continue;
    sums.inputs += 1;
    sums.ownTokens += inputTokens[i]!;
    sums.characters += inputs[i]!.length;
  }
  const isReported = charged && isPlausibleReport(dependencies, request, run, sums);
  const promptTokens = isReported ? sums.reported : sums.ownTokens;
  const outcome = {
    usage: {
      ...noUsage,
      promptTokens,
      characters: sums.characters,
      durationMs: sums.billedMs,
    },
    counted: !isReported || sums.counted,
    error,
    reason: failure === null ? null : findFailureReason(failure.error),
    charged,
    reachedModel: reachedModel || isModelFailure(error),
    vendorCostNano,
  };
  return { outcome, embedded, promptTokens };
}

// decision 0028
import type { EmbeddingJob, EmbeddingPart } from '../../shared/work/queue/job-kinds.ts';
import { encodeResult, type EmbeddingResultHeader } from '../../shared/work/replies/result.ts';
import { dropVectors, type EmbeddingOutcomes } from '../embeddings/embedding-task.ts';
import { createVendorSignal, isReplaced, notSettled, type JobDeps, type RequestRun } from './job-context.ts';
import { finishRun } from './finish-run.ts';
import { findFailure, measureInputs } from './measure-inputs.ts';
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
      const { signal, stopping, log, begin, progress, facts } = run;
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
        ...(facts && { observer: facts }),
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

async function settlePart(
  dependencies: JobDeps,
  part: EmbeddingPart,
  run: RequestRun,
  result: EmbeddingOutcomes,
): Promise<void> {
  const { request } = part;
  if (isReplaced(run) && findFailure(result, run) !== null) return;
  const { outcome, embedded, promptTokens } = measureInputs(dependencies, part, run, result);
  await finishRun(dependencies, run, request, outcome, async (receipt) => {
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
  if (outcome.error !== null) run.reply.error(outcome.error);
}

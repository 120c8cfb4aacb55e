import { computeCost, noUsage } from '../../shared/catalog/cost.ts';
import type { PreparedInputs } from '../../shared/preparing/embeddings/prepare-embedding.ts';
import { maxEmbeddingsBytes, writeEmbeddings } from '../../shared/responses/present-embeddings.ts';
import {
  dropVectors,
  type EmbeddingTask,
  type FinishedLine as EmbeddedLine,
} from '../embeddings/embedding-task.ts';
import type { JobDeps } from '../runs/job-context.ts';
import { measureInputs } from '../runs/measure-inputs.ts';
import { toError, toRequest, writeFailure, type LineCallContext } from './line-call.ts';
import type { LineWriter } from './line-writer.ts';
import { findMaxCharge, type ReservedLine } from './ready-line.ts';
import { writeAround } from './result-lines.ts';
import type { FinishedLine } from './slice-results.ts';

export interface EmbedContext extends LineCallContext {
  /** Writes a result, which is then passed on at once. */
  readonly write: LineWriter['write'];
}

/**
 * Embeds lines together. Each line succeeds or fails alone.
 * @param onLine called with each line that has ended
 * @returns when all lines have ended, except those that were withdrawn before a model was called
 */
export async function embedLines(
  dependencies: JobDeps,
  lines: readonly ReservedLine[],
  context: EmbedContext,
  onLine: (line: FinishedLine) => void,
): Promise<void> {
  const groups = new Map<string, ReservedLine[]>();
  for (const line of lines) {
    const name = `${line.model.id}\n${jobOf(line).dimensions ?? ''}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [line]);
    else group.push(line);
  }
  await Promise.all([...groups.values()].map((group) => embedGroup(dependencies, group, context, onLine)));
}

/** Embeds lines of one model and number of dimensions. */
async function embedGroup(
  dependencies: JobDeps,
  lines: readonly ReservedLine[],
  context: EmbedContext,
  onLine: (line: FinishedLine) => void,
): Promise<void> {
  const [first] = lines;
  const { model } = first!;
  const inputs: string[] = [];
  const inputTokens: number[] = [];
  const lineNumbers: number[] = [];
  for (const [i, line] of lines.entries()) {
    const job = jobOf(line);
    for (const [j, input] of job.inputs.entries()) {
      inputs.push(input);
      inputTokens.push(job.inputTokens[j]!);
      lineNumbers.push(i);
    }
  }
  const task: EmbeddingTask = {
    accountId: context.accountId,
    isBackground: true,
    dimensions: jobOf(first!).dimensions,
    isPaidByTime: model.pricing.type === 'time',
    user: null,
    inputs,
    lines: lineNumbers,
    inputTokens,
    signal: context.withdrawn,
    stopSignal: neverAborted,
    stopping: context.stopping,
    deadlineAtMs: Number.MAX_SAFE_INTEGER,
    log: context.log,
    onLines: (ended) => {
      for (const one of ended) {
        const finished = finishLine(dependencies, lines[one.line]!, one, context);
        if (finished !== null) onLine(finished);
      }
    },
  };
  await dependencies.embeddings.embed(model.id, task);
}

function jobOf({ work }: ReservedLine): PreparedInputs {
  if (work.kind !== 'embedding') throw new TypeError('only embeddings are called together');
  return work.job;
}

const neverAborted = new AbortController().signal;

/** Returns null for a line of which inputs were withdrawn before a model was called for them. */
function finishLine(
  dependencies: JobDeps,
  line: ReservedLine,
  ended: EmbeddedLine,
  context: EmbedContext,
): FinishedLine | null {
  try {
    const { work } = line;
    if (work.kind !== 'embedding') throw new TypeError('only embeddings are called together');
    const request = toRequest(line, context);
    const { log, withdrawn } = context;
    const { inputs, inputTokens, dimensions } = work.job;
    const part = { request, inputs, inputTokens, dimensions };
    const { outcomes, reachedModel } = ended;
    const result = { outcomes, reachedModel, hasDisconnected: false };
    // Some of its inputs may have vectors. They are not charged, and run again with the others.
    const isWithdrawn =
      withdrawn.aborted && ended.outcomes.some((one) => 'error' in one && one.error === withdrawn.reason);
    if (isWithdrawn) return null;
    const { outcome, embedded } = measureInputs(dependencies, part, { signal: withdrawn, log }, result);
    const cost = outcome.charged ? computeCost(request.pricing, outcome.usage) : 0n;
    const max = findMaxCharge(line);
    const costNano = cost < max ? cost : max;
    const charge = outcome.reachedModel
      ? {
          model: request.model,
          priceVersion: request.priceVersion,
          usage: outcome.charged ? outcome.usage : noUsage,
          reasoningTokens: 0,
          counted: outcome.counted,
          costNano,
          vendorCostNano: outcome.vendorCostNano ?? null,
          startedAtMs: request.admittedAtMs,
        }
      : null;
    const common = { reservedNano: line.reservedNano, charge };
    if (outcome.error !== null) return { ...writeFailure(line, toError(outcome.error)), ...common };
    const header = {
      created: Math.floor(Date.now() / 1_000),
      costNano: costNano.toString(),
      free: false,
      durationMs: Date.now() - request.admittedAtMs,
      promptTokens: outcome.usage.promptTokens,
      dimensions: embedded[0]!.dimensions,
    };
    const vectors =
      embedded.length === 1 ? embedded[0]!.vector : Buffer.concat(embedded.map((one) => one.vector));
    const response = { requestId: line.id, model: request.model, header, vectors, format: work.format };
    const { head: before, tail: after } = writeAround(line, 200);
    const maxBytes = maxBytesPerUnit * (before.length + after.length) + maxEmbeddingsBytes(response);
    const piece = context.write(maxBytes, (target, at) =>
      writeEmbeddings(response, target, at, { before, after }),
    );
    return { index: line.index, pieces: [piece], status: 200, ...common };
  } finally {
    dropVectors(ended);
  }
}

/** A UTF-16 unit in UTF-8. */
const maxBytesPerUnit = 3;

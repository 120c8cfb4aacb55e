import { finishRequest } from '../../shared/billing/finish-request.ts';
import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { noUsage } from '../../shared/pricing/cost.ts';
import type { EmbeddingJob, EmbeddingPart } from '../../shared/queue/job-kinds.ts';
import { encodeResult, type EmbeddingResultHeader } from '../../shared/reply/result.ts';
import { planCalls, shareExactly, type PlannedInput } from '../embeddings/plan-calls.ts';
import { callRoute } from '../routing/call-route.ts';
import { UpstreamError } from '../upstreams/upstream.ts';
import {
  CallerGone,
  createCallContext,
  describeFailure,
  isModelsFailure,
  isReplaced,
  sendResult,
  type JobDependencies,
  type RequestRun,
} from './job-context.ts';

/** How long a batch waits where no route can be called for the moment. */
const patience = { keyMs: 60_000, breakerMs: 30_000 };

/** What one vendor call brought one of its inputs. */
interface EmbeddedInput {
  readonly vector: Buffer;
  readonly dimensions: number;
  readonly tokens: number;
  readonly counted: boolean;
  readonly billedMs: number;
}

/** Where a call failed, and whether a model had been asked by then. */
interface FailedInput {
  readonly error: unknown;
  readonly reachedModel: boolean;
}

type InputOutcome = EmbeddedInput | FailedInput;

/**
 * Runs a batch: its parts' inputs become as few calls as the vendor's limits allow, and each part is settled and
 * answered for itself. Never rejects.
 * @param runs one for each part, in order
 */
export async function runEmbedding(
  dependencies: JobDependencies,
  job: EmbeddingJob,
  runs: readonly RequestRun[],
): Promise<void> {
  const wanted = job.parts
    .map((part, i) => ({ part, run: runs[i]! }))
    .filter(({ run }) => !run.signal.aborted);
  const outcomes = await embedParts(dependencies, job, wanted);
  await Promise.all(
    job.parts.map(async (part, i) => {
      const run = runs[i]!;
      const index = wanted.findIndex((one) => one.part === part);
      const own = index < 0 ? [{ error: new CallerGone(), reachedModel: false }] : outcomes[index]!;
      await answerPart(dependencies, part, run, own);
    }),
  );
}

interface WantedPart {
  readonly part: EmbeddingPart;
  readonly run: RequestRun;
}

async function embedParts(
  dependencies: JobDependencies,
  job: EmbeddingJob,
  wanted: readonly WantedPart[],
): Promise<InputOutcome[][]> {
  const model = dependencies.catalog.find(job.model);
  if (model === undefined || model.routes.length === 0) {
    const error = new AppError('model_disabled', { message: `The model ${job.model} has no upstream now.` });
    return wanted.map(() => [{ error, reachedModel: false }]);
  }
  const inputs = wanted.flatMap(({ part }, index) =>
    part.inputs.map((text, i): PlannedInput => ({ part: index, text, tokens: part.inputTokens[i] ?? 0 })),
  );
  const upstreams = model.routes.map((route) => route.upstream);
  const calls = planCalls(inputs, {
    maxInputs: Math.min(...upstreams.map((upstream) => upstream.maxBatchInputs)),
    maxTokens: Math.min(...upstreams.map((upstream) => upstream.maxBatchTokens)),
  });
  const answers = await Promise.all(calls.map((call) => embedCall(dependencies, model, job, call, wanted)));
  const outcomes: InputOutcome[][] = wanted.map(() => []);
  calls.forEach((call, c) => call.forEach((input, i) => outcomes[input.part]!.push(answers[c]![i]!)));
  return outcomes;
}

/** One vendor call; where it is refused and more than one caller shares it, each caller's inputs go by themselves. */
async function embedCall(
  dependencies: JobDependencies,
  model: CatalogModel,
  job: EmbeddingJob,
  call: readonly PlannedInput[],
  wanted: readonly WantedPart[],
): Promise<InputOutcome[]> {
  const parts = [...new Set(call.map((input) => input.part))];
  const signals = parts.map((part) => wanted[part]!.run.signal);
  const { run, part } = wanted[parts[0]!]!;
  let reachedModel = false;
  try {
    return await callRoute(dependencies.routing, {
      routes: model.routes,
      patience,
      signal: abortedWhenAll(signals),
      log: run.log,
      deadlineAtMs: Math.max(...parts.map((one) => wanted[one]!.part.request.deadlineAtMs)),
      hasOutput: () => false,
      attempt: async (upstream, target) => {
        if (upstream.embed === undefined)
          throw new UpstreamError('rejected', 'This upstream has no embedding models.');
        reachedModel = true;
        const startedAtMs = performance.now();
        const answer = await upstream.embed(
          target,
          {
            inputs: call.map((input) => input.text),
            dimensions: job.dimensions,
            user: parts.length === 1 ? part.request.user : null,
          },
          createCallContext(dependencies, part.request, { log: run.log, signal: abortedWhenAll(signals) }),
        );
        const weights = call.map((input) => input.tokens);
        const total = answer.promptTokens ?? weights.reduce((a, b) => a + b, 0);
        const tokens = shareExactly(total, weights);
        const times = shareExactly(Math.round(performance.now() - startedAtMs), weights);
        const size = answer.dimensions * 4;
        return call.map((_, i) => ({
          vector: answer.vectors.subarray(i * size, (i + 1) * size),
          dimensions: answer.dimensions,
          tokens: tokens[i]!,
          counted: answer.promptTokens === null,
          billedMs: times[i]!,
        }));
      },
    });
  } catch (error) {
    const isRefused = error instanceof AppError && error.code === 'upstream_rejected';
    if (!isRefused || parts.length === 1) return call.map(() => ({ error, reachedModel }));
    const alone = await Promise.all(
      parts.map((one) =>
        embedCall(
          dependencies,
          model,
          job,
          call.filter((input) => input.part === one),
          wanted,
        ),
      ),
    );
    // The inputs of a call are in the order of its parts.
    return alone.flat();
  }
}

/** A merged call goes on while any of its callers waits. */
function abortedWhenAll(signals: readonly AbortSignal[]): AbortSignal {
  if (signals.length === 1) return signals[0]!;
  const all = new AbortController();
  let left = signals.length;
  for (const signal of signals) {
    const onAbort = (): void => {
      left -= 1;
      if (left === 0) all.abort(signal.reason);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  }
  return all.signal;
}

async function answerPart(
  dependencies: JobDependencies,
  { request, inputs }: EmbeddingPart,
  run: RequestRun,
  outcomes: readonly InputOutcome[],
): Promise<void> {
  const failed = outcomes.find((outcome) => 'error' in outcome);
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
    reachedModel: failed === undefined || failed.reachedModel || isModelsFailure(error),
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
  const bytes = encodeResult(
    header,
    embedded.map((one) => one.vector),
  );
  await sendResult(dependencies, request, run, bytes);
}

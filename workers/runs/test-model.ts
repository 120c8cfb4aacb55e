// decision 0098
import type { CatalogModel, CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { AppError, toAppError } from '../../shared/contract/errors.ts';
import { shorten } from '../../shared/platform/runtime/shorten.ts';
import { callRedis } from '../../shared/platform/redis/redis-client.ts';
import { noImageOptions } from '../../shared/work/queue/job-kinds.ts';
import type { ControlMessage, ModelTestResult } from '../../shared/work/replies/worker-control.ts';
import { listCandidates } from '../../shared/routing/route-candidate.ts';
import { callRoute, type RouteTarget } from '../routing/call-route.ts';
import {
  noUpstreamUsage,
  UpstreamError,
  wrongLength,
  type CallContext,
  type Upstream,
  type UpstreamTarget,
  type UpstreamUsage,
} from '../upstreams/upstream.ts';
import type { JobDeps } from './job-context.ts';

export type ModelTestRequest = Extract<ControlMessage, { action: 'test-model' }>;

/** How long the call may take, with waiting. */
const maxTestMs = 60_000;
const waitLimits = { keyMs: 5_000, breakerMs: 5_000 };
/** How long the operator may take to read the reply. */
const replySeconds = 120;
const maxReasonLength = 500;
/** Of the answer to a chat. Some models refuse fewer tokens. */
const maxTokens = 16;

/** Stands for an account where calls take turns by account. */
const testAccount = 'model-test';

/** What one test calls. */
interface Tested {
  readonly routes: readonly CatalogRoute[];
  /** The fingerprint of the only key; null if any may be used. */
  readonly key: string | null;
}

/**
 * Makes one short call to a model for the operator, or one with each key of one upstream, and replies how they went.
 * Nobody is charged.
 */
export async function testModel(
  dependencies: JobDeps,
  { model: id, upstream, reply }: ModelTestRequest,
): Promise<void> {
  const { redis, catalog } = dependencies;
  const model = catalog.find(id);
  const results =
    model === undefined
      ? [describe(null, 0, 'The worker does not have this model.')]
      : await Promise.all(listTests(model, upstream).map((tested) => run(dependencies, model, tested)));
  await callRedis(() =>
    redis.multi().rpush(reply, JSON.stringify(results)).expire(reply, replySeconds).exec(),
  );
}

function listTests({ routes }: CatalogModel, upstream: string | null): Tested[] {
  if (upstream === null) return [{ routes, key: null }];
  const route = routes.find((one) => one.upstream.name === upstream);
  if (route === undefined) return [];
  return listCandidates(route).map(({ apiKey, fingerprint }) => ({
    routes: [{ ...route, upstream: { ...route.upstream, apiKeys: apiKey === null ? [] : [apiKey] } }],
    key: fingerprint,
  }));
}

async function run(
  { routing, log }: JobDeps,
  model: CatalogModel,
  { routes, key }: Tested,
): Promise<ModelTestResult> {
  const startedMs = performance.now();
  const signal = AbortSignal.timeout(maxTestMs);
  let called: RouteTarget['target'] | null = null;
  let upstreamName: string | null = null;
  const durationMs = (): number => Math.round(performance.now() - startedMs);
  try {
    const usage = await callRoute(routing, {
      accountIds: () => [testAccount],
      model: model.id,
      routes,
      waitLimits,
      retriesRateLimits: false,
      retriesTimeouts: false,
      signal,
      deadlineAtMs: Date.now() + maxTestMs,
      log,
      hasOutput: () => false,
      attempt: async (upstream, target, { route }) => {
        called = target;
        upstreamName = route.upstream.name;
        return await callOnce(model, upstream, target, {
          signal,
          accountId: testAccount,
          log,
          media: noMedia,
          recalled: new Map(),
        });
      },
    });
    return {
      ...describe(null, durationMs(), null),
      ...toRoute(upstreamName, called),
      ...toCounts(usage),
      key,
      ok: true,
    };
  } catch (error) {
    return { ...describe(error, durationMs(), null), ...toRoute(upstreamName, called), key };
  }
}

const toRoute = (upstream: string | null, target: UpstreamTarget | null) => ({
  upstream,
  upstreamModel: target?.model ?? null,
});

const toCounts = ({ promptTokens, completionTokens }: UpstreamUsage) => ({ promptTokens, completionTokens });

/** Describes a test that has not succeeded. The vendor's own words come before those that a caller would get. */
function describe(error: unknown, durationMs: number, reason: string | null): ModelTestResult {
  const cause = error instanceof AppError ? error.cause : error;
  const vendor = cause instanceof UpstreamError ? cause : null;
  const text = vendor?.message ?? (error === null ? reason : explain(error));
  return {
    ok: false,
    upstream: null,
    upstreamModel: null,
    key: null,
    durationMs,
    promptTokens: null,
    completionTokens: null,
    status: vendor?.status ?? null,
    reason: text === null ? null : shorten(text, maxReasonLength),
  };
}

const explain = (error: unknown): string =>
  error instanceof Error && error.name === 'TimeoutError'
    ? `The model did not answer within ${maxTestMs / 1_000} s.`
    : toAppError(error).publicMessage;

const noMedia: CallContext['media'] = {
  reserve: () => Promise.reject(new AppError('internal_error', { message: 'a test has no media' })),
  loadImage: () => Promise.reject(new AppError('internal_error', { message: 'a test has no media' })),
};

async function callOnce(
  model: CatalogModel,
  upstream: Upstream,
  target: UpstreamTarget,
  context: CallContext,
): Promise<UpstreamUsage> {
  switch (model.type) {
    case 'chat':
    case 'vision':
      return await chat(upstream, target, context);
    case 'embedding': {
      if (upstream.embed === undefined) throw unsupported();
      const call = { inputs: ['test'], dimensions: null, user: null };
      const { promptTokens, dimensions, release } = await upstream.embed(target, call, context);
      release?.();
      const expected = model.dimensions?.default ?? dimensions;
      if (dimensions !== expected) throw wrongLength(dimensions, expected);
      return { ...noUpstreamUsage, promptTokens };
    }
    case 'image': {
      if (upstream.generateImages === undefined) throw unsupported();
      const { usage, shortfallReason, images } = await upstream.generateImages(
        target,
        toImageCall(model),
        context,
      );
      if (images.length === 0 && shortfallReason !== undefined) throw shortfallReason;
      return usage ?? noUpstreamUsage;
    }
    default:
      return model.type satisfies never;
  }
}

async function chat(
  upstream: Upstream,
  target: UpstreamTarget,
  context: CallContext,
): Promise<UpstreamUsage> {
  if (upstream.chat === undefined) throw unsupported();
  const body = { messages: [{ role: 'user', content: 'Reply with OK.' }], max_tokens: maxTokens };
  let usage = noUpstreamUsage;
  let isFinished = false;
  for await (const events of upstream.chat(target, body, false, context))
    for (const event of events) {
      if (event.type === 'usage') usage = event.usage;
      if (event.type === 'finish') isFinished = true;
    }
  if (!isFinished) throw new UpstreamError('unavailable', 'The response ended before it was complete.');
  return usage;
}

/** One image of the model's first size. */
const toImageCall = ({ sizes }: CatalogModel) => ({
  prompt: 'a black dot',
  negativePrompt: null,
  n: 1,
  size: sizes?.[0] ?? '1024x1024',
  isSizeRequested: false,
  quality: null,
  style: null,
  user: null,
  inputs: [],
  mask: null,
  options: noImageOptions,
  partialImages: null,
});

const unsupported = (): UpstreamError =>
  new UpstreamError('rejected', 'This upstream does not support the type of the model.');

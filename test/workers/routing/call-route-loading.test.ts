import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import type { CatalogRoute } from '../../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { breakerRules } from '../../../shared/routing/breaker-rules.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { callRoute, type RouteCall, type Routing } from '../../../workers/routing/call-route.ts';
import { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { UpstreamPool } from '../../../workers/routing/upstream-pool.ts';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';
import { createRoute } from '../../support/routing.ts';
import { useRedis } from '../../support/use-redis.ts';

/** A call holds no route slot while its inputs load, because the caller controls how long loading takes. */

const redis = useRedis(test);
const log = createLogger('test', 'silent');

/** Counts how often a slot was requested. */
class CountingLimiter extends RouteLimiter {
  requests = 0;

  override async acquire(...args: Parameters<RouteLimiter['acquire']>): ReturnType<RouteLimiter['acquire']> {
    this.requests += 1;
    return await super.acquire(...args);
  }
}

function createRouting(t: ExecutionContext): Routing & { readonly limiter: CountingLimiter } {
  const limiter = new CountingLimiter(redis(), randomUUID(), log);
  const upstreams = new UpstreamPool(log);
  t.teardown(async () => {
    await limiter.stop();
    await upstreams.close();
  });
  return { limiter, upstreams };
}

function call(
  routing: Routing,
  routes: readonly CatalogRoute[],
  more: Partial<RouteCall<string>> = {},
): Promise<string> {
  return callRoute(routing, {
    accountIds: () => ['account'],
    model: 'model',
    routes,
    signal: new AbortController().signal,
    deadlineAtMs: Date.now() + 60_000,
    waitLimits: { keyMs: 15_000, breakerMs: 0 },
    retriesRateLimits: false,
    retriesTimeouts: true,
    log,
    hasOutput: () => false,
    attempt: (_upstream, { model }) => Promise.resolve(model),
    ...more,
  });
}

/** An input that calls need on the routes of the given models. It loads when the test calls `load`. */
function createInput(...models: readonly string[]) {
  let load!: () => void;
  let fail!: (error: Error) => void;
  let markStarted!: () => void;
  const loaded = new Promise<void>((resolve, reject) => {
    load = resolve;
    fail = reject;
  });
  const started = new Promise<void>((resolve) => {
    markStarted = resolve;
  });
  let isSentAsBytes = false;
  let loads = 0;
  const findMissing: RouteCall<string>['findMissing'] = (targets) => {
    if (isSentAsBytes || !targets.every(({ target }) => models.includes(target.model))) return null;
    return async () => {
      loads += 1;
      markStarted();
      await loaded;
      isSentAsBytes = true;
    };
  };
  return {
    findMissing,
    started,
    load: () => load(),
    fail: (error: Error) => fail(error),
    countLoads: () => loads,
  };
}

test('an input that all routes need is loaded before a slot is requested', async (t) => {
  const routing = createRouting(t);
  const routes = [createRoute('all-1', { maxConcurrency: 1 }), createRoute('all-2', { maxConcurrency: 1 })];
  const input = createInput('all-1', 'all-2');
  const loading = call(routing, routes, { findMissing: input.findMissing });
  await input.started;
  t.is(routing.limiter.requests, 0);
  t.is(await call(routing, routes.slice(0, 1)), 'all-1');
  t.is(await call(routing, routes.slice(1)), 'all-2');
  input.load();
  t.regex(await loading, /^all-/);
  t.is(routing.limiter.requests, 3);
  t.is(input.countLoads(), 1);
});

test('an input that only one route needs is loaded only if that route is chosen, and the call holds no slot while loading', async (t) => {
  const routing = createRouting(t);
  const needy = createRoute('needy', { weight: 1e9, maxConcurrency: 1 });
  const other = createRoute('other', { weight: 1e-9 });
  const input = createInput('needy');
  const loading = call(routing, [needy, other], { findMissing: input.findMissing });
  await input.started;
  // The route has one slot, and the loading call does not hold it.
  t.is(await call(routing, [needy]), 'needy');
  input.load();
  t.is(await loading, 'needy');
  t.is(input.countLoads(), 1);

  const unused = createInput('other');
  t.is(await call(routing, [needy, other], { findMissing: unused.findMissing }), 'needy');
  t.is(unused.countLoads(), 0);
});

test('a call without inputs to load requests one slot', async (t) => {
  const routing = createRouting(t);
  t.is(await call(routing, [createRoute('plain')], { findMissing: () => null }), 'plain');
  t.is(routing.limiter.requests, 1);
});

test('if loading an input fails, the call fails and releases its slot, and the failure is not recorded for the route', async (t) => {
  const routing = createRouting(t);
  const needy = createRoute('broken', { weight: 1e9, maxConcurrency: 1 });
  const input = createInput('broken');
  const failure = new AppError('validation_failed');
  input.fail(failure);
  const { findMissing } = input;
  for (const routes of [[needy], [needy, createRoute('broken-2', { weight: 1e-9 })]]) {
    t.is(await t.throwsAsync(call(routing, routes, { findMissing })), failure);
  }
  t.is(await call(routing, [needy]), 'broken');
});

test('a call cancelled while an input loads fails with the cancellation reason', async (t) => {
  const routing = createRouting(t);
  const cancellation = new AbortController();
  const reason = new Error('the caller disconnected');
  const { signal } = cancellation;
  const findMissing = () => (): Promise<void> => {
    cancellation.abort(reason);
    return Promise.reject(reason);
  };
  t.is(await t.throwsAsync(call(routing, [createRoute('left')], { findMissing, signal })), reason);
});

test('when a call returns its probe slot to load an input, another call may probe', async (t) => {
  const routing = createRouting(t);
  const route = createRoute('probed', { weight: 1e9 });
  const fail = (): Promise<never> =>
    Promise.reject(new UpstreamError('unavailable', 'it broke', { status: 500 }));
  for (let i = 0; i < breakerRules.minCalls; i++)
    await t.throwsAsync(call(routing, [route], { attempt: fail, hasOutput: () => true }));
  await routing.limiter.stop();
  await t.throwsAsync(call(routing, [route]), { message: /is currently unavailable/ });

  const input = createInput('probed');
  const waitLimits = { keyMs: 0, breakerMs: breakerRules.firstPauseMs + 1_000 };
  // The first check finds no missing input, as if another route needed none; the second check, with a slot, finds one.
  let isFirstCheck = true;
  const findMissing: RouteCall<string>['findMissing'] = (targets) => {
    const missing = isFirstCheck ? null : (input.findMissing?.(targets) ?? null);
    isFirstCheck = false;
    return missing;
  };
  const loading = call(routing, [route], { findMissing, waitLimits });
  await input.started;
  t.is(await call(routing, [route], { waitLimits }), 'probed');
  input.load();
  t.is(await loading, 'probed');
});

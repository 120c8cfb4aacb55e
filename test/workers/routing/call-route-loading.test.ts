import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import type { CatalogRoute } from '../../../shared/catalog/catalog-schema.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { breakerRules } from '../../../shared/routing/breaker-rules.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { callRoute, type RouteCall, type Routing } from '../../../workers/routing/call-route.ts';
import { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { UpstreamPool } from '../../../workers/routing/upstream-pool.ts';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';
import { createRoute } from '../../support/routing.ts';
import { useRedis } from '../../support/use-redis.ts';

/** Data that a call needs is loaded while it holds no slot, because its sender controls how long that takes. */

const redis = useRedis(test);
const log = createLogger('test', 'silent');

/** Counts slot requests. */
class CountingLimiter extends RouteLimiter {
  entries = 0;

  override async acquire(...args: Parameters<RouteLimiter['acquire']>): ReturnType<RouteLimiter['acquire']> {
    this.entries += 1;
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

/** Data needed by calls on the given models' routes, loaded when the test says so. */
function createNeed(...models: readonly string[]) {
  let load!: () => void;
  let fail!: (error: Error) => void;
  let begin!: () => void;
  const loaded = new Promise<void>((resolve, reject) => {
    load = resolve;
    fail = reject;
  });
  const started = new Promise<void>((resolve) => {
    begin = resolve;
  });
  let isSentAsBytes = false;
  let loads = 0;
  const findMissing: RouteCall<string>['findMissing'] = (targets) => {
    if (isSentAsBytes || !targets.every(({ target }) => models.includes(target.model))) return null;
    return async () => {
      loads += 1;
      begin();
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

test('data that all routes need is loaded before a slot is requested', async (t) => {
  const routing = createRouting(t);
  const routes = [createRoute('all-1', { maxConcurrency: 1 }), createRoute('all-2', { maxConcurrency: 1 })];
  const need = createNeed('all-1', 'all-2');
  const loading = call(routing, routes, { findMissing: need.findMissing });
  await need.started;
  t.is(routing.limiter.entries, 0);
  t.is(await call(routing, routes.slice(0, 1)), 'all-1');
  t.is(await call(routing, routes.slice(1)), 'all-2');
  need.load();
  t.regex(await loading, /^all-/);
  t.is(routing.limiter.entries, 3);
  t.is(need.countLoads(), 1);
});

test('data that only one of several routes needs is loaded when that route is called, and its slot is free until then', async (t) => {
  const routing = createRouting(t);
  const needy = createRoute('needy', { weight: 1e9, maxConcurrency: 1 });
  const other = createRoute('other', { weight: 1e-9 });
  const need = createNeed('needy');
  const loading = call(routing, [needy, other], { findMissing: need.findMissing });
  await need.started;
  // The loading call does not hold the route's only slot.
  t.is(await call(routing, [needy]), 'needy');
  need.load();
  t.is(await loading, 'needy');
  t.is(need.countLoads(), 1);

  const unneeded = createNeed('other');
  t.is(await call(routing, [needy, other], { findMissing: unneeded.findMissing }), 'needy');
  t.is(unneeded.countLoads(), 0);
});

test('a call that needs no data requests a slot once', async (t) => {
  const routing = createRouting(t);
  t.is(await call(routing, [createRoute('plain')], { findMissing: () => null }), 'plain');
  t.is(routing.limiter.entries, 1);
});

test('a loading failure ends the call, does not count against the route, and frees its slot', async (t) => {
  const routing = createRouting(t);
  const needy = createRoute('broken', { weight: 1e9, maxConcurrency: 1 });
  const need = createNeed('broken');
  const failure = new AppError('validation_failed');
  need.fail(failure);
  const { findMissing } = need;
  for (const routes of [[needy], [needy, createRoute('broken-2', { weight: 1e-9 })]]) {
    t.is(await t.throwsAsync(call(routing, routes, { findMissing })), failure);
  }
  t.is(await call(routing, [needy]), 'broken');
});

test('a call whose caller disconnects during loading ends with the reason', async (t) => {
  const routing = createRouting(t);
  const caller = new AbortController();
  const reason = new Error('the caller left');
  const { signal } = caller;
  const findMissing = () => (): Promise<void> => {
    caller.abort(reason);
    return Promise.reject(reason);
  };
  t.is(await t.throwsAsync(call(routing, [createRoute('left')], { findMissing, signal })), reason);
});

test('a probe that is returned for loading leaves the probe to another call', async (t) => {
  const routing = createRouting(t);
  const route = createRoute('probed', { weight: 1e9 });
  const fail = (): Promise<never> =>
    Promise.reject(new UpstreamError('unavailable', 'it broke', { status: 500 }));
  for (let i = 0; i < breakerRules.minCalls; i++)
    await t.throwsAsync(call(routing, [route], { attempt: fail, hasOutput: () => true }));
  await routing.limiter.stop();
  await t.throwsAsync(call(routing, [route]), { message: /can be called at the moment/ });

  const need = createNeed('probed');
  const waitLimits = { keyMs: 0, breakerMs: breakerRules.firstPauseMs + 1_000 };
  // As with another route that needs nothing: the need is only known once this one is granted.
  let isAhead = true;
  const findMissing: RouteCall<string>['findMissing'] = (targets) => {
    const missing = isAhead ? null : (need.findMissing?.(targets) ?? null);
    isAhead = false;
    return missing;
  };
  const loading = call(routing, [route], { findMissing, waitLimits });
  await need.started;
  t.is(await call(routing, [route], { waitLimits }), 'probed');
  need.load();
  t.is(await loading, 'probed');
});

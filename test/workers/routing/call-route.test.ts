import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { CatalogRoute } from '../../../shared/catalog/catalog-schema.ts';
import { breakerRules } from '../../../shared/routing/breaker-rules.ts';
import { listCandidates } from '../../../shared/routing/route-candidate.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import type { EndedCall } from '../../../workers/routing/call-observer.ts';
import { callRoute, type GrantedCall, type Routing } from '../../../workers/routing/call-route.ts';
import { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { UpstreamPool } from '../../../workers/routing/upstream-pool.ts';
import { makeOneImagePerCall } from '../../../workers/upstreams/one-image-per-call.ts';
import { noUpstreamUsage, UpstreamError } from '../../../workers/upstreams/upstream.ts';
import { createRoute } from '../../support/routing.ts';
import { createContext } from '../../support/upstream-target.ts';
import { useRedis } from '../../support/use-redis.ts';

/** Which routes a call tries, in which order, and for how long. */

const redis = useRedis(test);
const log = createLogger('test', 'silent');

function createRouting(t: ExecutionContext): Routing {
  const limiter = new RouteLimiter(redis(), randomUUID(), log);
  const upstreams = new UpstreamPool(log);
  t.teardown(async () => {
    await limiter.stop();
    await upstreams.close();
  });
  return { limiter, upstreams };
}

type Attempt = (model: string, granted: GrantedCall) => string | Promise<string>;

async function call(
  routing: Routing,
  routes: readonly CatalogRoute[],
  attempt: Attempt,
  retriesRateLimits = false,
): Promise<string> {
  return await callRoute(routing, {
    accountIds: () => ['account'],
    model: 'model',
    routes,
    signal: new AbortController().signal,
    deadlineAtMs: Date.now() + 60_000,
    waitLimits: { keyMs: 15_000, breakerMs: 1_500 },
    retriesRateLimits,
    retriesTimeouts: true,
    log,
    hasOutput: () => false,
    attempt: async (_upstream, { model }, granted) => await attempt(model, granted),
  });
}

test('a vendor failure is recorded for the route even if the caller has disconnected', async (t) => {
  const routing = createRouting(t);
  const route = createRoute('left-and-failed');
  const limits = {
    accountIds: () => ['account'],
    model: 'model',
    deadlineAtMs: Date.now() + 5_000,
    log,
    retriesRateLimits: false,
    retriesTimeouts: true,
  };
  const waitLimits = { keyMs: 0, breakerMs: 0 };
  const reason = new Error('the caller disconnected');
  for (let i = 0; i < breakerRules.minCalls; i++) {
    const cancellation = new AbortController();
    const attempt = (): Promise<never> => {
      cancellation.abort(reason);
      return Promise.reject(new UpstreamError('unavailable', 'it broke', { status: 500 }));
    };
    const { signal } = cancellation;
    const routeCall = { ...limits, waitLimits, routes: [route], signal, hasOutput: () => false, attempt };
    t.is(await t.throwsAsync(callRoute(routing, routeCall)), reason);
  }
  await routing.limiter.stop();
  const { signal } = new AbortController();
  t.is(await routing.limiter.acquire(listCandidates(route), { ...limits, waitLimits, signal }), null);
});

const limited = (retryAfterMs: number): UpstreamError =>
  new UpstreamError('rate_limited', 'slower', { status: 429, retryAfterMs });

test('a route that failed once is retried before a long wait for the key of another route', async (t) => {
  const routing = createRouting(t);
  const steady = createRoute('steady', { weight: 1e9, apiKeys: ['a'] });
  const paused = createRoute('paused', { weight: 1e-9, apiKeys: ['b'] });
  const tried: string[] = [];
  await t.throwsAsync(
    call(routing, [paused], () => {
      throw limited(10_000);
    }),
    { message: /have reached their rate limits/ },
  );
  const result = await call(routing, [steady, paused], (model) => {
    tried.push(model);
    if (tried.length === 1) throw new UpstreamError('unavailable', 'a bad moment', { status: 503 });
    return model;
  });
  t.is(result, 'steady');
  t.deepEqual(tried, ['steady', 'steady']);
});

test('a call waits for the key of another route if its cooldown ends shortly', async (t) => {
  const routing = createRouting(t);
  const steady = createRoute('steady-2', { weight: 1e9, apiKeys: ['a'] });
  const paused = createRoute('paused-2', { weight: 1e-9, apiKeys: ['b'] });
  await t.throwsAsync(
    call(routing, [paused], () => {
      throw limited(600);
    }),
  );
  const tried: string[] = [];
  const result = await call(routing, [steady, paused], (model) => {
    tried.push(model);
    if (model === 'steady-2') throw new UpstreamError('unavailable', 'a bad moment', { status: 503 });
    return model;
  });
  t.is(result, 'paused-2');
});

test('no attempt starts once the request has taken as long as the timeout of one call', async (t) => {
  const routing = createRouting(t);
  const route = createRoute('bounded', { apiKeys: ['a'] });
  const startedAt = performance.now();
  const startTimesMs: number[] = [];
  await t.throwsAsync(
    call(routing, [route], () => {
      startTimesMs.push(performance.now() - startedAt);
      throw limited(3_000);
    }),
    { message: /have reached their rate limits/ },
  );
  t.true(
    startTimesMs.every((ms) => ms < route.upstream.timeoutMs),
    String(startTimesMs),
  );
});

test('a durable job that the vendor rate-limits is retried any number of times within its time limit', async (t) => {
  const routing = createRouting(t);
  const route = createRoute('often-limited', { apiKeys: ['a'] });
  let calls = 0;
  const attempt = (): string => {
    calls += 1;
    // One more than other calls may fail.
    if (calls <= 9) throw limited(0);
    return 'answered';
  };
  t.is(await call(routing, [route], attempt, true), 'answered');

  // The time limit is twice the timeout of one call. That timeout is a second.
  const startedAt = performance.now();
  const refuse = (): string => {
    throw limited(200);
  };
  await t.throwsAsync(call(routing, [createRoute('always-limited', { apiKeys: ['b'] })], refuse, true), {
    message: /have reached their rate limits/,
  });
  const tookMs = performance.now() - startedAt;
  t.true(tookMs < 5_000, `${tookMs} ms`);
});

test('when images are made one per call, the calls of all workers together stay within the slots of their route', async (t) => {
  const route = createRoute('one-a-call', { routeConcurrency: 2 });
  const { signal } = new AbortController();
  let [inFlight, maxInFlight] = [0, 0];
  const makeOne = async () => {
    inFlight += 1;
    maxInFlight = Math.max(maxInFlight, inFlight);
    for (let i = 0; i < 5; i++) await nextTurn();
    inFlight -= 1;
    return { images: [], calls: 1, usage: null };
  };
  const attempt: Attempt = async (_model, { acquireExtraSlot }) =>
    String((await makeOneImagePerCall(4, createContext({ signal, acquireExtraSlot }), makeOne)).calls);
  const workers = [createRouting(t), createRouting(t), createRouting(t)];
  t.deepEqual(await Promise.all(workers.map((routing) => call(routing, [route], attempt))), ['4', '4', '4']);
  t.is(maxInFlight, 2);
  // All slots are free again.
  await Promise.all(workers.map(({ limiter }) => limiter.stop()));
  const result = await call(createRouting(t), [route], (_model, { spareSlots }) => `${spareSlots} more`);
  t.is(result, '1 more');
});

test('bodies that a server fails at, with the same words each time, do not block their account while the route serves others', async (t) => {
  const routing = createRouting(t);
  const route = createRoute('served');
  const callFor = async (accountId: string, attempt: () => Promise<string>): Promise<string> =>
    await callRoute(routing, {
      accountIds: () => [accountId],
      model: 'model',
      routes: [route],
      signal: new AbortController().signal,
      deadlineAtMs: Date.now() + 60_000,
      waitLimits: { keyMs: 0, breakerMs: 0 },
      retriesRateLimits: false,
      retriesTimeouts: true,
      log,
      hasOutput: () => false,
      attempt,
    });
  const fail = (words: string) => () =>
    Promise.reject(new UpstreamError('unavailable', words, { status: 500 }));
  for (let i = 0; i < 2 * breakerRules.minCalls; i++) {
    if (i % 5 === 0) t.is(await callFor('bob', () => Promise.resolve('fine')), 'fine');
    await t.throwsAsync(callFor('ann', fail(`request ${i} broke`)));
  }
  t.is(await callFor('ann', () => Promise.resolve('fine')), 'fine');
});

test('each call is noted once with its status, reason and usage, also before its attempt ends', async (t) => {
  const ended: EndedCall[] = [];
  const routing = { ...createRouting(t), onCallEnded: (one: EndedCall) => void ended.push(one) };
  const routes = [createRoute('noted-first', { weight: 1_000_000_000 }), createRoute('noted-second')];
  const usage = { ...noUpstreamUsage, promptTokens: 3 };
  await call(routing, routes, (model, { noteUsage, noteSuccess }) => {
    if (model === 'noted-first') {
      noteUsage(usage);
      throw new UpstreamError('unavailable', 'overloaded', { status: 503 });
    }
    noteSuccess();
    t.is(ended.length, 2);
    return 'response';
  });
  t.like(ended, [
    { end: 'unavailable', status: 503, reason: 'overloaded', usage },
    { end: 'success', status: 200, reason: null, usage: null },
  ]);
  t.is(ended.length, 2);
});

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import { loadTokenizer } from '../../../shared/catalog/count-tokens.ts';
import type { ChatJob } from '../../../shared/work/queue/job-kinds.ts';
import { RouteStateStore } from '../../../shared/routing/route-state-store.ts';
import { listCandidates } from '../../../shared/routing/route-candidate.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { Conversation } from '../../../workers/runs/conversation.ts';
import { CallerGone, type JobDeps, type RequestRun } from '../../../workers/runs/job-context.ts';
import { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { UpstreamError, type CallContext, type ChatEvent } from '../../../workers/upstreams/upstream.ts';
import { createRoute } from '../../support/routing.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);
const log = createLogger('test', 'silent');
// Loading the tokenizer later would take long enough to distort the timings below.
loadTokenizer();

async function* emitAndTimeOut(): AsyncGenerator<readonly ChatEvent[]> {
  yield [{ type: 'delta', index: 0, delta: { content: 'word' } }];
  await delay(20);
  throw new UpstreamError('timeout', 'the call took over 320 ms');
}

for (const unreadMs of [300, 0]) {
  const effect =
    unreadMs > 0
      ? 'is due to a slow caller and is not recorded as a failure of'
      : 'is due to the vendor and is recorded as a failure of';
  test(`a timeout after ${unreadMs} ms without reading ${effect} the route`, async (t) => {
    const limiter = new RouteLimiter(redis(), randomUUID(), log);
    t.teardown(() => limiter.stop());
    const route = createRoute(`read-after-${unreadMs}`);
    const dependencies = {
      routing: { limiter, upstreams: { get: () => ({ chat: emitAndTimeOut }) } },
      media: {},
    } as unknown as JobDeps;
    const request = { requestId: 'r', model: 'm', accountId: 'a', deadlineAtMs: Date.now() + 10_000 };
    const body = { model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }], max_tokens: 9 };
    const run = {
      reply: { delta: () => undefined, whenWritable: () => null },
      signal: new AbortController().signal,
      stopping: new AbortController().signal,
      whenResumed: () => (unreadMs > 0 ? delay(unreadMs) : null),
      log,
    } as unknown as RequestRun;
    const conversation = new Conversation({ request, body } as unknown as ChatJob, run);
    const result = conversation.ask(dependencies, {
      id: 'm',
      context: 8_192,
      routes: [route],
      published: {},
    } as unknown as CatalogModel);
    await t.throwsAsync(result, { message: /too long/ });
    t.true(conversation.hasOutput);
    // Wait until Redis has the outcome of the call.
    await limiter.stop();
    const state = await new RouteStateStore(redis()).read(listCandidates(route)[0]!, Date.now());
    t.is(state.failed, unreadMs > 0 ? 0 : 1);
    t.is(state.calls, 0);
  });
}

test('if a call is aborted after one choice, charges for what may have been generated of the other choices', async (t) => {
  const limiter = new RouteLimiter(redis(), randomUUID(), log);
  t.teardown(() => limiter.stop());
  const upstream = { ...createRoute('two-answers').upstream, disconnectGraceMs: 0 };
  const route = { ...createRoute('two-answers'), upstream };
  const caller = new AbortController();
  let hasEnded = false;
  const chat = async function* (...args: unknown[]): AsyncGenerator<readonly ChatEvent[]> {
    (args[3] as CallContext).onSent?.();
    yield [{ type: 'delta', index: 0, delta: { content: 'word' } }];
    hasEnded = true;
    yield [{ type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: 'stop' }];
    // This delta arrives with the end of the first choice, and is read although the call has been aborted.
    yield [{ type: 'delta', index: 1, delta: { content: 'more' } }];
    await new Promise(() => undefined);
  };
  const dependencies = {
    routing: { limiter, upstreams: { get: () => ({ chat }) } },
    media: {},
  } as unknown as JobDeps;
  const request = { requestId: 'r', model: 'm', accountId: 'a', deadlineAtMs: Date.now() + 10_000 };
  const messages = [{ role: 'user', content: 'hi' }];
  const body = { model: 'm', stream: true, messages, max_tokens: 20, n: 2 };
  const pause = async (): Promise<void> => {
    // Longer than the time between two words of a model.
    await delay(600);
    caller.abort(new CallerGone());
  };
  const run = {
    reply: { delta: () => undefined, whenWritable: () => null },
    signal: caller.signal,
    stopping: new AbortController().signal,
    whenResumed: () => (hasEnded && !caller.signal.aborted ? pause() : null),
    log,
  } as unknown as RequestRun;
  const conversation = new Conversation({ request, body } as unknown as ChatJob, run);
  const model = { id: 'm', context: 8_192, routes: [route], published: { reasoning: true } };
  await t.throwsAsync(conversation.ask(dependencies, model as unknown as CatalogModel), {
    instanceOf: CallerGone,
  });
  t.true(conversation.isCharged);
  t.like(conversation.measure(), { completionTokens: 40, counted: true });
});

test('if stopping the worker aborts a non-streamed call after a disconnect, charges for what may have been generated', async (t) => {
  const limiter = new RouteLimiter(redis(), randomUUID(), log);
  t.teardown(() => limiter.stop());
  const route = createRoute('stopped');
  const [caller, stopping] = [new AbortController(), new AbortController()];
  let calls = 0;
  const chat = async function* (...args: unknown[]): AsyncGenerator<readonly ChatEvent[]> {
    const { signal, onSent } = args[3] as CallContext;
    calls += 1;
    onSent?.();
    caller.abort(new CallerGone());
    await delay(50);
    t.false(signal.aborted, 'the call is still read');
    stopping.abort();
    signal.throwIfAborted();
    yield [{ type: 'finish', index: 0, finishReason: 'stop', nativeFinishReason: null }];
  };
  const dependencies = {
    routing: { limiter, upstreams: { get: () => ({ chat }) } },
    media: {},
  } as unknown as JobDeps;
  const request = { requestId: 'r', model: 'm', accountId: 'a', deadlineAtMs: Date.now() + 10_000 };
  const body = { model: 'm', messages: [{ role: 'user', content: 'hi' }], max_tokens: 20 };
  const run = {
    reply: {},
    signal: caller.signal,
    stopping: stopping.signal,
    whenResumed: () => null,
    log,
  } as unknown as RequestRun;
  const conversation = new Conversation({ request, body } as unknown as ChatJob, run);
  const model = { id: 'm', context: 8_192, routes: [route], published: {} } as unknown as CatalogModel;
  await t.throwsAsync(conversation.ask(dependencies, model), { instanceOf: CallerGone });
  t.is(calls, 1);
  t.true(conversation.isCharged);
  t.like(conversation.measure(), { completionTokens: 20, counted: true });
});

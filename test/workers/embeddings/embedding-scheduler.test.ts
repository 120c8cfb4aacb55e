import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import type { CallDeps } from '../../../workers/embeddings/embedding-caller.ts';
import { EmbeddingScheduler } from '../../../workers/embeddings/embedding-scheduler.ts';
import type { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';
import { createRoute } from '../../support/routing.ts';

/** A stop signal that is never aborted. */
const never = new AbortController().signal;

test('when no caller waits any more, the pending acquire at the limiter is cancelled, and a later caller starts a new one', async (t) => {
  // A limiter whose slots are all taken.
  const acquireSignals: AbortSignal[] = [];
  const acquire: RouteLimiter['acquire'] = (_, { signal }) => {
    acquireSignals.push(signal);
    return new Promise((__, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  };
  const routing = { limiter: { acquire } };
  const model = { routes: [createRoute('a')], embeddingCache: null } as unknown as CatalogModel;
  const scheduler = new EmbeddingScheduler({ routing } as unknown as CallDeps, {
    modelId: 'emb',
    findModel: () => model,
  });
  const embed = (signal: AbortSignal): ReturnType<EmbeddingScheduler['embed']> => {
    const inputs = { inputs: ['text'], inputTokens: [1], user: null, dimensions: null, accountId: 'ann' };
    return scheduler.embed({
      ...inputs,
      isPaidByTime: false,
      signal,
      stopSignal: never,
      deadlineAtMs: Infinity,
      log: undefined as never,
    });
  };

  const cancellation = new AbortController();
  const cancelled = embed(cancellation.signal);
  await setImmediate();
  t.deepEqual(
    acquireSignals.map(({ aborted }) => aborted),
    [false],
  );
  cancellation.abort(new Error('left'));
  t.like((await cancelled).outcomes[0], { error: { message: 'left' } });
  t.true(scheduler.isIdle);
  t.deepEqual(
    acquireSignals.map(({ aborted }) => aborted),
    [true],
  );

  const later = new AbortController();
  t.teardown(() => later.abort());
  void embed(later.signal);
  await setImmediate();
  t.deepEqual(
    acquireSignals.map(({ aborted }) => aborted),
    [true, false],
  );
});

test('if a text is requested again while its call is searched for bad inputs, the text is computed again', async (t) => {
  const route = createRoute('a');
  const model = { routes: [route], embeddingCache: null } as unknown as CatalogModel;
  const endBadCalls: (() => void)[] = [];
  const calls: (readonly string[])[] = [];
  const upstream = {
    async embed(_: unknown, { inputs }: { inputs: readonly string[] }) {
      calls.push(inputs);
      // The call with only the bad input fails last, when the test lets it.
      if (inputs.length === 1 && inputs[0] === 'bad')
        await new Promise<void>((done) => void endBadCalls.push(done));
      if (inputs.includes('bad')) throw new UpstreamError('rejected', 'no');
      return { vectors: Buffer.alloc(inputs.length * 4), dimensions: 1, promptTokens: null };
    },
  };
  const candidate = { route, apiKey: null, fingerprint: 'none' };
  const limiter = {
    acquire: () => Promise.resolve({ candidate, lease: '', isProbe: false, spareSlots: 0, slots: 1 }),
    release: () => undefined,
    reportFailure: () => undefined,
  };
  const log = { warn: () => undefined };
  const dependencies = { routing: { limiter, upstreams: { get: () => upstream } }, log, media: {} };
  const scheduler = new EmbeddingScheduler(dependencies as unknown as CallDeps, {
    modelId: 'emb',
    findModel: () => model,
  });
  const embed = (accountId: string, inputs: string[]): ReturnType<EmbeddingScheduler['embed']> => {
    const inputTokens = inputs.map(() => 1);
    const { signal } = new AbortController();
    const task = {
      accountId,
      inputs,
      inputTokens,
      signal,
      stopSignal: never,
      user: null,
      dimensions: null,
      isPaidByTime: false,
      deadlineAtMs: Infinity,
    };
    return scheduler.embed({ ...task, log: undefined as never });
  };
  const texts = Array.from({ length: 40 }, (_, i) => `text ${i}`);
  const first = embed('ann', texts);
  const bad = embed('bob', ['bad']);
  while (endBadCalls.length === 0) await setImmediate();
  const again = embed('ann', ['text 0']);
  t.false('error' in (await again).outcomes[0]!);
  t.false('error' in (await first).outcomes[0]!);
  endBadCalls[0]!();
  t.like((await bad).outcomes[0], { error: { code: 'upstream_rejected' } });
  t.is(
    calls.filter((inputs) => inputs.includes('text 0')).length,
    3,
    'once in the rejected call, once in the call without the bad input, once for the later request',
  );
});

/** A call to the vendor whose outcome the test decides. */
interface VendorCall {
  readonly inputs: readonly string[];
  readonly signal: AbortSignal;
  respond(): void;
  fail(error: Error): void;
}

/** A scheduler whose vendor responds when the test says so. Its limiter grants slots while `grantsSlots` is set. */
function createHeldScheduler(): {
  readonly embed: (
    accountId: string,
    inputs: string[],
    signal: AbortSignal,
    stop?: AbortSignal,
  ) => ReturnType<EmbeddingScheduler['embed']>;
  readonly nextCall: () => Promise<VendorCall>;
  readonly calls: readonly VendorCall[];
  grantsSlots: boolean;
} {
  const route = createRoute('a');
  const model = { routes: [route], embeddingCache: null } as unknown as CatalogModel;
  const calls: VendorCall[] = [];
  const upstream = {
    embed: (_: unknown, { inputs }: { inputs: readonly string[] }, { signal }: { signal: AbortSignal }) =>
      new Promise((resolve, reject) => {
        const vectors = Buffer.alloc(inputs.length * 4);
        const response = { vectors, dimensions: 1, broken: [], promptTokens: inputs.length, release: null };
        calls.push({ inputs, signal, respond: () => resolve(response), fail: reject });
      }),
  };
  const held = { grantsSlots: true };
  const limiter = {
    async acquire(_: unknown, { signal }: { signal: AbortSignal }) {
      while (!held.grantsSlots) {
        await setImmediate();
        signal.throwIfAborted();
      }
      const candidate = { route, apiKey: null, fingerprint: 'none' };
      return { candidate, lease: '', isProbe: false, spareSlots: 0, slots: 2 };
    },
    release: () => undefined,
    reportFailure: () => undefined,
  };
  const log = { warn: () => undefined };
  const dependencies = { routing: { limiter, upstreams: { get: () => upstream } }, log, media: {} };
  const scheduler = new EmbeddingScheduler(dependencies as unknown as CallDeps, {
    modelId: 'emb',
    findModel: () => model,
  });
  let seen = 0;
  return Object.assign(held, {
    calls,
    embed(accountId: string, inputs: string[], signal: AbortSignal, stop = never) {
      const inputTokens = inputs.map(() => 1);
      const task = { accountId, inputs, inputTokens, signal, stopSignal: stop, user: null, dimensions: null };
      return scheduler.embed({
        ...task,
        isPaidByTime: false,
        deadlineAtMs: Infinity,
        log: undefined as never,
      });
    },
    async nextCall() {
      while (calls.length <= seen) await setImmediate();
      return calls[seen++]!;
    },
  });
}

test('a request that must stop immediately does not wait for the vendor call in flight', async (t) => {
  const scheduler = createHeldScheduler();
  const [signals, stop] = [new AbortController(), new AbortController()];
  const result = scheduler.embed('ann', ['one', 'two'], signals.signal, stop.signal);
  const call = await scheduler.nextCall();
  const reason = new Error('banned');
  stop.abort(reason);
  signals.abort(reason);
  const { outcomes, hasDisconnected, reachedModel } = await result;
  t.deepEqual(outcomes, [{ error: reason }, { error: reason }]);
  t.false(hasDisconnected);
  t.true(reachedModel);
  call.respond();
});

test('if the last caller disconnects, the vendor call in flight continues and that caller gets the outcome', async (t) => {
  const scheduler = createHeldScheduler();
  const cancellation = new AbortController();
  const cancelled = scheduler.embed('ann', ['one', 'two'], cancellation.signal);
  const call = await scheduler.nextCall();
  cancellation.abort(new Error('left'));
  await setImmediate();
  t.false(call.signal.aborted);
  call.respond();
  const { outcomes, hasDisconnected, reachedModel } = await cancelled;
  t.true(hasDisconnected && reachedModel);
  t.deepEqual(
    outcomes.map((outcome) => ('tokens' in outcome ? outcome.tokens : null)),
    [1, 1],
  );
});

test('if a call fails after all of its callers disconnected, it is not retried', async (t) => {
  const scheduler = createHeldScheduler();
  const cancellation = new AbortController();
  const cancelled = scheduler.embed('ann', ['one'], cancellation.signal);
  const call = await scheduler.nextCall();
  cancellation.abort(new Error('left'));
  call.fail(new UpstreamError('unavailable', 'no'));
  const { outcomes, hasDisconnected } = await cancelled;
  t.true(hasDisconnected);
  t.true('error' in outcomes[0]!);
  await setImmediate();
  t.is(scheduler.calls.length, 1);
});

test('a failed call is retried for the callers that still wait, without the inputs of others', async (t) => {
  const scheduler = createHeldScheduler();
  const cancellation = new AbortController();
  const cancelled = scheduler.embed('ann', ['hers'], cancellation.signal);
  const waiting = scheduler.embed('bob', ['his'], new AbortController().signal);
  const call = await scheduler.nextCall();
  t.deepEqual(call.inputs, ['hers', 'his']);
  cancellation.abort(new Error('left'));
  call.fail(new UpstreamError('unavailable', 'no'));
  const again = await scheduler.nextCall();
  t.deepEqual(again.inputs, ['his']);
  t.true('error' in (await cancelled).outcomes[0]!);
  again.respond();
  t.like((await waiting).outcomes[0], { tokens: 1 });
});

test('if a caller disconnects while a search for bad inputs waits for a slot, its request fails immediately and its inputs are not searched', async (t) => {
  const scheduler = createHeldScheduler();
  const cancellation = new AbortController();
  const cancelled = scheduler.embed('ann', ['hers'], cancellation.signal);
  const waiting = scheduler.embed('bob', ['his'], new AbortController().signal);
  const call = await scheduler.nextCall();
  scheduler.grantsSlots = false;
  call.fail(new UpstreamError('rejected', 'no'));
  await setImmediate();
  cancellation.abort(new Error('left'));
  t.true('error' in (await cancelled).outcomes[0]!);
  scheduler.grantsSlots = true;
  const again = await scheduler.nextCall();
  t.deepEqual(again.inputs, ['his']);
  again.respond();
  t.like((await waiting).outcomes[0], { tokens: 1 });
  t.is(scheduler.calls.length, 2);
});

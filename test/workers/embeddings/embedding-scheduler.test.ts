import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import type { CallDeps } from '../../../workers/embeddings/embedding-caller.ts';
import { EmbeddingScheduler } from '../../../workers/embeddings/embedding-scheduler.ts';
import type { RouteLimiter } from '../../../workers/routing/route-limiter.ts';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';
import { createRoute } from '../../support/routing.ts';

/** The signal of work that may continue. */
const never = new AbortController().signal;

test('when no caller waits any more, a scheduler leaves no request at the limiter, and later requests get a slot', async (t) => {
  // A limiter whose slots are all taken.
  const entered: AbortSignal[] = [];
  const acquire: RouteLimiter['acquire'] = (_, { signal }) => {
    entered.push(signal);
    return new Promise((__, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  };
  const routing = { limiter: { acquire } };
  const model = { routes: [createRoute('a')], embeddingCache: null } as unknown as CatalogModel;
  const line = new EmbeddingScheduler({ routing } as unknown as CallDeps, {
    modelId: 'emb',
    findModel: () => model,
  });
  const embed = (signal: AbortSignal): ReturnType<EmbeddingScheduler['embed']> => {
    const inputs = { inputs: ['text'], inputTokens: [1], user: null, dimensions: null, accountId: 'ann' };
    return line.embed({
      ...inputs,
      isPaidByTime: false,
      signal,
      stopSignal: never,
      deadlineAtMs: Infinity,
      log: undefined as never,
    });
  };

  const caller = new AbortController();
  const disconnected = embed(caller.signal);
  await setImmediate();
  t.deepEqual(
    entered.map(({ aborted }) => aborted),
    [false],
  );
  caller.abort(new Error('left'));
  t.like((await disconnected).outcomes[0], { error: { message: 'left' } });
  t.true(line.isIdle);
  t.deepEqual(
    entered.map(({ aborted }) => aborted),
    [true],
  );

  const later = new AbortController();
  t.teardown(() => later.abort());
  void embed(later.signal);
  await setImmediate();
  t.deepEqual(
    entered.map(({ aborted }) => aborted),
    [true, false],
  );
});

test('a text that is requested again while its call is searched for bad inputs is computed again', async (t) => {
  const route = createRoute('a');
  const model = { routes: [route], embeddingCache: null } as unknown as CatalogModel;
  const searched: (() => void)[] = [];
  const calls: (readonly string[])[] = [];
  const upstream = {
    async embed(_: unknown, { inputs }: { inputs: readonly string[] }) {
      calls.push(inputs);
      // The call with only the bad input is answered last.
      if (inputs.length === 1 && inputs[0] === 'bad')
        await new Promise<void>((done) => void searched.push(done));
      if (inputs.includes('bad')) throw new UpstreamError('rejected', 'no');
      return { vectors: Buffer.alloc(inputs.length * 4), dimensions: 1, promptTokens: null };
    },
  };
  const candidate = { route, apiKey: null, fingerprint: 'none' };
  const limiter = {
    acquire: () => Promise.resolve({ candidate, lease: '', isProbe: false, spareSlots: 0, slots: 1 }),
    release: () => undefined,
  };
  const log = { warn: () => undefined };
  const dependencies = { routing: { limiter, upstreams: { get: () => upstream } }, log, media: {} };
  const line = new EmbeddingScheduler(dependencies as unknown as CallDeps, {
    modelId: 'emb',
    findModel: () => model,
  });
  const embed = (accountId: string, inputs: string[]): ReturnType<EmbeddingScheduler['embed']> => {
    const inputTokens = inputs.map(() => 1);
    const { signal } = new AbortController();
    const ask = {
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
    return line.embed({ ...ask, log: undefined as never });
  };
  const texts = Array.from({ length: 40 }, (_, i) => `text ${i}`);
  const first = embed('ann', texts);
  const bad = embed('bob', ['bad']);
  while (searched.length === 0) await setImmediate();
  const again = embed('ann', ['text 0']);
  t.false('error' in (await again).outcomes[0]!);
  t.false('error' in (await first).outcomes[0]!);
  searched[0]!();
  t.like((await bad).outcomes[0], { error: { code: 'upstream_rejected' } });
  t.is(
    calls.filter((inputs) => inputs.includes('text 0')).length,
    3,
    'in the rejected call, in the search, and for the later request',
  );
});

/** Decides the result of each call to the vendor, in the order of the calls. */
interface VendorCall {
  readonly inputs: readonly string[];
  readonly signal: AbortSignal;
  answer(): void;
  fail(error: Error): void;
}

/** A scheduler whose vendor responds, and whose limiter grants one slot at a time, only when the test says so. */
function createControlledScheduler(): {
  readonly embed: (
    accountId: string,
    inputs: string[],
    signal: AbortSignal,
    stop?: AbortSignal,
  ) => ReturnType<EmbeddingScheduler['embed']>;
  readonly nextCall: () => Promise<VendorCall>;
  readonly calls: readonly VendorCall[];
  gateIsOpen: boolean;
} {
  const route = createRoute('a');
  const model = { routes: [route], embeddingCache: null } as unknown as CatalogModel;
  const calls: VendorCall[] = [];
  const upstream = {
    embed: (_: unknown, { inputs }: { inputs: readonly string[] }, { signal }: { signal: AbortSignal }) =>
      new Promise((resolve, reject) => {
        const vectors = Buffer.alloc(inputs.length * 4);
        const answer = { vectors, dimensions: 1, broken: [], promptTokens: inputs.length, release: null };
        calls.push({ inputs, signal, answer: () => resolve(answer), fail: reject });
      }),
  };
  const held = { gateIsOpen: true };
  const limiter = {
    async acquire(_: unknown, { signal }: { signal: AbortSignal }) {
      while (!held.gateIsOpen) {
        await setImmediate();
        signal.throwIfAborted();
      }
      const candidate = { route, apiKey: null, fingerprint: 'none' };
      return { candidate, lease: '', isProbe: false, spareSlots: 0, slots: 2 };
    },
    release: () => undefined,
  };
  const log = { warn: () => undefined };
  const dependencies = { routing: { limiter, upstreams: { get: () => upstream } }, log, media: {} };
  const line = new EmbeddingScheduler(dependencies as unknown as CallDeps, {
    modelId: 'emb',
    findModel: () => model,
  });
  let seen = 0;
  return Object.assign(held, {
    calls,
    embed(accountId: string, inputs: string[], signal: AbortSignal, stop = never) {
      const inputTokens = inputs.map(() => 1);
      const ask = { accountId, inputs, inputTokens, signal, stopSignal: stop, user: null, dimensions: null };
      return line.embed({ ...ask, isPaidByTime: false, deadlineAtMs: Infinity, log: undefined as never });
    },
    async nextCall() {
      while (calls.length <= seen) await setImmediate();
      return calls[seen++]!;
    },
  });
}

test('work that must end immediately does not wait for a vendor call in flight', async (t) => {
  const line = createControlledScheduler();
  const [signals, stop] = [new AbortController(), new AbortController()];
  const ended = line.embed('ann', ['one', 'two'], signals.signal, stop.signal);
  const call = await line.nextCall();
  const reason = new Error('banned');
  stop.abort(reason);
  signals.abort(reason);
  const { outcomes, hasDisconnected, reachedModel } = await ended;
  t.deepEqual(outcomes, [{ error: reason }, { error: reason }]);
  t.false(hasDisconnected);
  t.true(reachedModel);
  call.answer();
});

test('a vendor call continues when its last caller disconnects, and that caller gets its result', async (t) => {
  const line = createControlledScheduler();
  const caller = new AbortController();
  const disconnected = line.embed('ann', ['one', 'two'], caller.signal);
  const call = await line.nextCall();
  caller.abort(new Error('left'));
  await setImmediate();
  t.false(call.signal.aborted);
  call.answer();
  const { outcomes, hasDisconnected, reachedModel } = await disconnected;
  t.true(hasDisconnected && reachedModel);
  t.deepEqual(
    outcomes.map((outcome) => ('tokens' in outcome ? outcome.tokens : null)),
    [1, 1],
  );
});

test('a call that fails after all of its callers have disconnected is not retried', async (t) => {
  const line = createControlledScheduler();
  const caller = new AbortController();
  const disconnected = line.embed('ann', ['one'], caller.signal);
  const call = await line.nextCall();
  caller.abort(new Error('left'));
  call.fail(new UpstreamError('unavailable', 'no'));
  const { outcomes, hasDisconnected } = await disconnected;
  t.true(hasDisconnected);
  t.true('error' in outcomes[0]!);
  await setImmediate();
  t.is(line.calls.length, 1);
});

test('a failed call is retried for the callers that still wait, without the inputs of others', async (t) => {
  const line = createControlledScheduler();
  const caller = new AbortController();
  const disconnected = line.embed('ann', ['hers'], caller.signal);
  const stayed = line.embed('bob', ['his'], new AbortController().signal);
  const call = await line.nextCall();
  t.deepEqual(call.inputs, ['hers', 'his']);
  caller.abort(new Error('left'));
  call.fail(new UpstreamError('unavailable', 'no'));
  const again = await line.nextCall();
  t.deepEqual(again.inputs, ['his']);
  t.true('error' in (await disconnected).outcomes[0]!);
  again.answer();
  t.like((await stayed).outcomes[0], { tokens: 1 });
});

test('a caller that disconnects while a search for bad inputs waits for a slot is notified immediately, and its inputs are left out of the search', async (t) => {
  const line = createControlledScheduler();
  const caller = new AbortController();
  const disconnected = line.embed('ann', ['hers'], caller.signal);
  const stayed = line.embed('bob', ['his'], new AbortController().signal);
  const call = await line.nextCall();
  line.gateIsOpen = false;
  call.fail(new UpstreamError('rejected', 'no'));
  await setImmediate();
  caller.abort(new Error('left'));
  t.true('error' in (await disconnected).outcomes[0]!);
  line.gateIsOpen = true;
  const again = await line.nextCall();
  t.deepEqual(again.inputs, ['his']);
  again.answer();
  t.like((await stayed).outcomes[0], { tokens: 1 });
  t.is(line.calls.length, 2);
});

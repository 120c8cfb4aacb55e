import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import { EmbeddingLine, type LineDependencies } from '../../../workers/embeddings/embedding-line.ts';
import { Suspects } from '../../../workers/embeddings/suspects.ts';
import type { RouteGate } from '../../../workers/routing/route-gate.ts';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';
import { createRoute } from '../../support/routing.ts';

test('when nobody waits any more, none of a line stays at the gate; who comes then is let in', async (t) => {
  // A gate of which every slot is taken.
  const entered: AbortSignal[] = [];
  const enter: RouteGate['enter'] = (_, { signal }) => {
    entered.push(signal);
    return new Promise((__, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  };
  const routing = { gate: { enter } };
  const model = { routes: [createRoute('a')], embeddingCache: null } as unknown as CatalogModel;
  const line = new EmbeddingLine({ routing } as unknown as LineDependencies, {
    modelId: 'emb',
    dimensions: null,
    findModel: () => model,
    suspects: new Suspects(),
  });
  const embed = (signal: AbortSignal): ReturnType<EmbeddingLine['embed']> => {
    const inputs = { inputs: ['text'], inputTokens: [1], user: null, accountId: 'ann' };
    return line.embed({ ...inputs, signal, deadlineAtMs: Infinity, log: undefined as never });
  };

  const leaving = new AbortController();
  const left = embed(leaving.signal);
  await setImmediate();
  t.deepEqual(
    entered.map(({ aborted }) => aborted),
    [false],
  );
  leaving.abort(new Error('left'));
  t.like((await left).outcomes[0], { error: { message: 'left' } });
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

test('a text that is asked for again while the call it went with is searched for bad inputs is computed anew', async (t) => {
  const route = createRoute('a');
  const model = { routes: [route], embeddingCache: null } as unknown as CatalogModel;
  const searched: (() => void)[] = [];
  const calls: (readonly string[])[] = [];
  const upstream = {
    async embed(_: unknown, { inputs }: { inputs: readonly string[] }) {
      calls.push(inputs);
      // The bad one by itself is answered last.
      if (inputs.length === 1 && inputs[0] === 'bad')
        await new Promise<void>((done) => void searched.push(done));
      if (inputs.includes('bad')) throw new UpstreamError('rejected', 'no');
      return { vectors: Buffer.alloc(inputs.length * 4), dimensions: 1, promptTokens: null };
    },
  };
  const way = { route, apiKey: null, fingerprint: 'none' };
  const gate = {
    enter: () => Promise.resolve({ way, lease: '', isProbe: false, spareSlots: 0, slots: 1 }),
    leave: () => undefined,
  };
  const log = { warn: () => undefined };
  const dependencies = { routing: { gate, upstreams: { get: () => upstream } }, log, media: {} };
  const line = new EmbeddingLine(dependencies as unknown as LineDependencies, {
    modelId: 'emb',
    dimensions: null,
    findModel: () => model,
    suspects: new Suspects(),
  });
  const embed = (accountId: string, inputs: string[]): ReturnType<EmbeddingLine['embed']> => {
    const inputTokens = inputs.map(() => 1);
    const { signal } = new AbortController();
    const ask = { accountId, inputs, inputTokens, signal, user: null, deadlineAtMs: Infinity };
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
    'refused, cleared, and for who came later',
  );
});

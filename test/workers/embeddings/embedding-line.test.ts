import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import { EmbeddingLine, type LineDependencies } from '../../../workers/embeddings/embedding-line.ts';
import type { RouteGate } from '../../../workers/routing/route-gate.ts';
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

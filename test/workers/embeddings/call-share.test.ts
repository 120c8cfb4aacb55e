import test from 'ava';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';
import { planBatchCall } from '../../../workers/embeddings/call-share.ts';

const upstream = {
  name: 'vendor',
  maxConcurrency: 8,
  maxBatchInputs: 2_048,
  maxBatchTokens: 300_000,
  maxConcurrencyPerKey: null,
};
const full = { maxInputs: 2_048, maxTokens: 300_000 };
const model = { routes: [{ upstream, model: 'emb', maxConcurrency: 8 }] } as unknown as CatalogModel;

/** Plans calls until no input waits. */
function planAll(waiting: number): number[] {
  const calls: number[] = [];
  let share: number | null = null;
  for (let left = waiting; left > 0; left -= calls.at(-1)!) {
    const planned = planBatchCall(model, full, left, false, share === null ? null : { share, waiting: left });
    share = planned.shareOfNext;
    calls.push(Math.min(left, planned.plan.maxInputs));
  }
  return calls;
}

test('calls for batch lines are full while more lines are expected', (t) => {
  t.is(planBatchCall(model, full, 10, true, null).plan.enough, 2_048);
  t.is(planBatchCall(model, full, 20_000, true, { share: 1_500, waiting: 20_000 }).plan.enough, 2_048);
});

test('the last lines of a batch are spread over as many rounds of even calls as full calls would take', (t) => {
  // Seven of eight slots: three rounds.
  const calls = planAll(35_664);
  t.is(calls.length, 21);
  t.true(Math.max(...calls) - Math.min(...calls) < 50);
});

test('calls for batch lines are at least half full, except the very last one', (t) => {
  t.deepEqual(planAll(2_500), [1_024, 1_024, 452]);
});

test('a share is decided again when more lines wait', (t) => {
  const decision = { share: 1_024, waiting: 2_048 };
  t.is(planBatchCall(model, full, 2_048, false, decision).plan.enough, 1_024);
  t.is(planBatchCall(model, full, 14_336, false, decision).plan.enough, 2_048);
});

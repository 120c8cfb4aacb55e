import test from 'ava';
import {
  AskUnderWay,
  dropVectors,
  VectorHold,
  WorkUnit,
  type EmbeddingAsk,
} from '../../../workers/embeddings/embedding-work.ts';

const ask = (inputs: readonly string[]): AskUnderWay => {
  const signal = new AbortController().signal;
  const rest = { user: null, inputTokens: [], signal, deadlineAtMs: Infinity, log: undefined as never };
  return new AskUnderWay({ accountId: 'ann', inputs, ...rest } satisfies EmbeddingAsk);
};

test('the vectors of a call are given back once every request that was given any has dropped them, and not before', async (t) => {
  let given = 0;
  const hold = new VectorHold(() => {
    given += 1;
  });
  const [first, second, third] = [ask(['a', 'b', 'a']), ask(['b']), ask(['b', 'c'])];
  const [a, b] = [new WorkUnit('ann', 'a', 1), new WorkUnit('ann', 'b', 1)];
  a.claim(first, 0);
  a.claim(first, 2);
  b.claim(first, 1);
  b.claim(second, 0);
  b.claim(third, 0);
  third.fail(new Error('it left before'));

  hold.take();
  const outcome = { vector: Buffer.alloc(4), hold, dimensions: 1, tokens: 1, counted: false, billedMs: 3 };
  a.deliver(outcome);
  b.deliver(outcome);
  // Whoever asked twice, or left meanwhile, holds nothing twice.
  first.deliver(1, outcome);
  hold.drop();
  t.is(given, 0);
  dropVectors(await first.answer);
  t.is(given, 0);
  dropVectors(await third.answer);
  t.is(given, 0);
  dropVectors(await second.answer);
  t.is(given, 1);
});

test('a request that ends without some of its vectors drops those that it has', async (t) => {
  let given = 0;
  const hold = new VectorHold(() => {
    given += 1;
  });
  const leaving = ask(['a', 'b']);
  const a = new WorkUnit('ann', 'a', 1);
  a.claim(leaving, 0);
  hold.take();
  a.deliver({ vector: Buffer.alloc(4), hold, dimensions: 1, tokens: 1, counted: false, billedMs: 3 });
  hold.drop();
  leaving.fail(new Error('it left'));
  t.is(given, 0);
  dropVectors(await leaving.answer);
  t.is(given, 1);
});

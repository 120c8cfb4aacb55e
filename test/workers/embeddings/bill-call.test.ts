import test from 'ava';
import fc from 'fast-check';
import { billCall, findSlack } from '../../../workers/embeddings/bill-call.ts';

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

const inputs = fc.array(
  fc.record({
    accountId: fc.constantFrom('ann', 'bob', 'eve'),
    tokens: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 8_192 })),
  }),
  { minLength: 1, maxLength: 40 },
);

test('nobody is billed more than the slack above their own count because of neighbours, whatever the vendor reports', (t) => {
  fc.assert(
    fc.property(inputs, fc.double({ min: 0, max: 30, noNaN: true }), fc.nat(100), (all, factor, more) => {
      const own = all.map(({ tokens }) => tokens);
      const reported = Math.round(sum(own) * factor) + more;
      const { tokens, agrees, isCounted, ownSum } = billCall(all, reported);
      t.is(ownSum, sum(own));
      t.true(tokens.every((billed) => Number.isInteger(billed) && billed >= 0));
      const isOfOne = new Set(all.map(({ accountId }) => accountId)).size === 1;
      if (isOfOne || agrees === true) {
        t.is(sum(tokens), reported, 'all that the vendor charges is billed');
        t.false(isCounted);
      } else {
        t.deepEqual(tokens, own);
        t.true(isCounted);
      }
      if (!isOfOne) {
        for (const [i, billed] of tokens.entries()) t.true(billed <= own[i]! + findSlack(own[i]!));
        t.true(sum(tokens) <= Math.max(reported, ownSum));
      }
    }),
    { numRuns: 2_000 },
  );
});

test('the slack covers two special tokens an input and a tenth of its count, and not a token more', (t) => {
  const texts = [
    { accountId: 'ann', tokens: 1 },
    { accountId: 'bob', tokens: 100 },
  ];
  t.deepEqual(billCall(texts, 105).tokens, [2, 103]);
  t.deepEqual(billCall(texts, 101 + 2 + 12).tokens, [3, 112]);
  t.like(billCall(texts, 101 + 2 + 12 + 1), { tokens: [1, 100], agrees: false, isCounted: true });
  t.like(billCall(texts, 101 - 14), { agrees: true, isCounted: false });
  t.like(billCall(texts, 101 - 15), { tokens: [1, 100], agrees: false, isCounted: true });
});

test('a neighbour whose text is many times dearer to the vendor than to us costs nobody anything', (t) => {
  const call = [
    ...Array.from({ length: 9 }, () => ({ accountId: 'eve', tokens: 160 })),
    { accountId: 'bob', tokens: 10 },
  ];
  t.is(billCall(call, 9 * 4_640 + 10).tokens.at(-1), 10);
  t.is(billCall(call, 9 * 20 + 10).tokens.at(-1), 10, 'nor does one whose text is cheaper');
});

test('one account alone is billed exactly what the vendor reports', (t) => {
  const call = [3, 5].map((tokens) => ({ accountId: 'ann', tokens }));
  t.like(billCall(call, 800), { tokens: [300, 500], agrees: false, isCounted: false });
  t.like(billCall(call, null), { tokens: [3, 5], agrees: null, isCounted: true });
});

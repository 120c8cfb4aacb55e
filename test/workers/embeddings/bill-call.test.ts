import test from 'ava';
import fc from 'fast-check';
import { billCall, findSlack, findTolerance } from '../../../workers/embeddings/bill-call.ts';

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

const inputs = fc.array(
  fc.record({
    accountId: fc.constantFrom('ann', 'bob', 'eve'),
    tokens: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 8_192 })),
  }),
  { minLength: 1, maxLength: 40 },
);

test('an account is billed at most the slack above its own count because of neighbours, whatever the vendor reports', (t) => {
  fc.assert(
    fc.property(inputs, fc.double({ min: 0, max: 30, noNaN: true }), fc.nat(100), (all, factor, more) => {
      const own = all.map(({ tokens }) => tokens);
      const reported = Math.max(1, Math.round(sum(own) * factor) + more);
      const { tokens, agrees, isCounted, countedSum } = billCall(all, reported);
      t.is(countedSum, sum(own));
      t.true(tokens.every((billed) => Number.isInteger(billed) && billed >= 0));
      const accounts = [...new Set(all.map(({ accountId }) => accountId))];
      const sumOf = (id: string, of: readonly number[]): number =>
        sum(of.filter((_, i) => all[i]!.accountId === id));
      const slack = sum(accounts.map((id) => findSlack(sumOf(id, own))));
      t.is(agrees, Math.abs(reported - countedSum) <= findTolerance(countedSum, accounts.length));
      if (accounts.length === 1 || (agrees === true && reported <= countedSum + slack)) {
        t.is(sum(tokens), reported, 'everything that the vendor charges is billed');
        t.false(isCounted);
      } else {
        t.deepEqual(tokens, own);
        t.true(isCounted);
      }
      if (accounts.length > 1) {
        for (const id of accounts) {
          t.true(sumOf(id, tokens) <= sumOf(id, own) + findSlack(sumOf(id, own)));
        }
        t.true(sum(tokens) <= Math.max(reported, countedSum));
      }
    }),
    { numRuns: 2_000 },
  );
});

test('the slack is exactly a tenth of an account’s own count', (t) => {
  const texts = [
    { accountId: 'ann', tokens: 9 },
    { accountId: 'bob', tokens: 60 },
    { accountId: 'bob', tokens: 40 },
  ];
  const own = [9, 60, 40];
  t.like(billCall(texts, 109 + 10), { tokens: [9, 66, 44], agrees: true, isCounted: false, excess: 10 });
  t.like(billCall(texts, 109 + 11), { tokens: own, agrees: true, isCounted: true, excess: 11 });
  t.like(billCall(texts, 109 + 10 + 2 * 2), { tokens: own, agrees: true, isCounted: true });
  t.like(billCall(texts, 109 + 10 + 2 * 2 + 1), { tokens: own, agrees: false, isCounted: true, excess: 0 });
  t.like(billCall(texts, 109 - 14), { agrees: true, isCounted: false, excess: 0 });
  t.like(billCall(texts, 109 - 15), { tokens: own, agrees: false, isCounted: true });
});

test('many short inputs get no more slack than one long one: none of them can hide a neighbour’s text', (t) => {
  const words = Array.from({ length: 200 }, () => ({ accountId: 'ann', tokens: 1 }));
  const bill = billCall([...words, { accountId: 'eve', tokens: 67 }], 200 + 442);
  t.like(bill, { agrees: false, isCounted: true });
  t.is(sum(bill.tokens.slice(0, 200)), 200);
});

test('a neighbour whose text has many times more tokens for the vendor than in our count does not raise anyone’s bill', (t) => {
  const call = [
    ...Array.from({ length: 9 }, () => ({ accountId: 'eve', tokens: 160 })),
    { accountId: 'bob', tokens: 10 },
  ];
  t.is(billCall(call, 9 * 4_640 + 10).tokens.at(-1), 10);
  t.is(billCall(call, 9 * 20 + 10).tokens.at(-1), 10, 'nor does a neighbour whose text has fewer');
});

test('an account that is alone in a call is billed exactly what the vendor reports', (t) => {
  const call = [3, 5].map((tokens) => ({ accountId: 'ann', tokens }));
  t.like(billCall(call, 800), { tokens: [300, 500], agrees: false, isCounted: false });
  t.like(billCall(call, null), { tokens: [3, 5], agrees: null, isCounted: true });
});

test('a vector is not cached at a cost that may include its neighbours’ excess', (t) => {
  const pair = [100, 100].map((tokens) => ({ accountId: 'ann', tokens }));
  const own = { tokens: [100, 100], isCounted: true };
  t.like(billCall(pair, 5_100), { tokens: [2_550, 2_550], isCounted: false, kept: own });
  t.like(billCall(pair, null), { kept: own });
  t.like(billCall(pair, 220), { kept: { tokens: [110, 110], isCounted: false } }, 'within the slack');
  t.like(
    billCall(pair, 100),
    { kept: { tokens: [50, 50], isCounted: false } },
    'a vocabulary of longer words',
  );
  t.like(billCall(pair.slice(1), 5_000), { kept: { tokens: [5_000], isCounted: false } }, 'alone');
});

test('a cached vector never costs more than it did at first, nor, with others, more than our own count plus the slack', (t) => {
  fc.assert(
    fc.property(inputs, fc.integer({ min: 1, max: 100_000 }), (all, reported) => {
      const { tokens, kept } = billCall(all, reported);
      const accounts = new Set(all.map(({ accountId }) => accountId)).size;
      const maxBilled = (own: number): number =>
        all.length === 1 ? reported : own + findTolerance(sum(all.map((one) => one.tokens)), accounts);
      t.true(kept.tokens.every((one, i) => one <= tokens[i]! && one <= maxBilled(all[i]!.tokens)));
    }),
  );
});

test('a reported usage of zero tokens is ignored: every account is billed from our own count', (t) => {
  const texts = [
    { accountId: 'ann', tokens: 9 },
    { accountId: 'ann', tokens: 60 },
  ];
  t.deepEqual(billCall(texts, 0), billCall(texts, null));
  t.like(billCall(texts, 0), { tokens: [9, 60], isCounted: true, agrees: null });
});

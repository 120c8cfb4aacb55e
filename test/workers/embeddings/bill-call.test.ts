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

test('for any vendor report, other accounts in a call never raise the bill of an account above our count plus its slack', (t) => {
  fc.assert(
    fc.property(inputs, fc.double({ min: 0, max: 30, noNaN: true }), fc.nat(100), (all, factor, more) => {
      const ownTokens = all.map(({ tokens }) => tokens);
      const reported = Math.max(1, Math.round(sum(ownTokens) * factor) + more);
      const { tokens, agrees, isCounted, countedSum } = billCall(all, reported);
      t.is(countedSum, sum(ownTokens));
      t.true(tokens.every((billed) => Number.isInteger(billed) && billed >= 0));
      const accounts = [...new Set(all.map(({ accountId }) => accountId))];
      const sumOf = (id: string, of: readonly number[]): number =>
        sum(of.filter((_, i) => all[i]!.accountId === id));
      const slack = sum(accounts.map((id) => findSlack(sumOf(id, ownTokens))));
      t.is(agrees, Math.abs(reported - countedSum) <= findTolerance(countedSum, accounts.length));
      if (accounts.length === 1 || (agrees === true && reported <= countedSum + slack)) {
        t.is(sum(tokens), reported, 'all tokens that the vendor reported are billed');
        t.false(isCounted);
      } else {
        t.deepEqual(tokens, ownTokens);
        t.true(isCounted);
      }
      if (accounts.length > 1) {
        for (const id of accounts) {
          t.true(sumOf(id, tokens) <= sumOf(id, ownTokens) + findSlack(sumOf(id, ownTokens)));
        }
        t.true(sum(tokens) <= Math.max(reported, countedSum));
      }
    }),
    { numRuns: 2_000 },
  );
});

test('the slack is exactly a tenth of our count for the account', (t) => {
  const texts = [
    { accountId: 'ann', tokens: 9 },
    { accountId: 'bob', tokens: 60 },
    { accountId: 'bob', tokens: 40 },
  ];
  const ownTokens = [9, 60, 40];
  t.like(billCall(texts, 109 + 10), { tokens: [9, 66, 44], agrees: true, isCounted: false, excess: 10 });
  t.like(billCall(texts, 109 + 11), { tokens: ownTokens, agrees: true, isCounted: true, excess: 11 });
  t.like(billCall(texts, 109 + 10 + 2 * 2), { tokens: ownTokens, agrees: true, isCounted: true });
  t.like(billCall(texts, 109 + 10 + 2 * 2 + 1), {
    tokens: ownTokens,
    agrees: false,
    isCounted: true,
    excess: 0,
  });
  t.like(billCall(texts, 109 - 14), { agrees: true, isCounted: false, excess: 0 });
  t.like(billCall(texts, 109 - 15), { tokens: ownTokens, agrees: false, isCounted: true });
});

test('many short inputs have no more slack than one long input, so an excess caused by another account is not billed to them', (t) => {
  const words = Array.from({ length: 200 }, () => ({ accountId: 'ann', tokens: 1 }));
  const bill = billCall([...words, { accountId: 'eve', tokens: 67 }], 200 + 442);
  t.like(bill, { agrees: false, isCounted: true });
  t.is(sum(bill.tokens.slice(0, 200)), 200);
});

test('if the vendor counts a text far higher than we do, other accounts in the call are not billed for the difference', (t) => {
  const call = [
    ...Array.from({ length: 9 }, () => ({ accountId: 'eve', tokens: 160 })),
    { accountId: 'bob', tokens: 10 },
  ];
  t.is(billCall(call, 9 * 4_640 + 10).tokens.at(-1), 10);
  t.is(billCall(call, 9 * 20 + 10).tokens.at(-1), 10, 'not billed for a far lower count either');
});

test('an account alone in a call is billed exactly what the vendor reports', (t) => {
  const call = [3, 5].map((tokens) => ({ accountId: 'ann', tokens }));
  t.like(billCall(call, 800), { tokens: [300, 500], agrees: false, isCounted: false });
  t.like(billCall(call, null), { tokens: [3, 5], agrees: null, isCounted: true });
});

test('the token count cached with a vector excludes tokens that may belong to other inputs of its call', (t) => {
  const pair = [100, 100].map((tokens) => ({ accountId: 'ann', tokens }));
  const ownTokens = { tokens: [100, 100], isCounted: true };
  t.like(billCall(pair, 5_100), { tokens: [2_550, 2_550], isCounted: false, kept: ownTokens });
  t.like(billCall(pair, null), { kept: ownTokens });
  t.like(billCall(pair, 220), { kept: { tokens: [110, 110], isCounted: false } }, 'within the slack');
  t.like(
    billCall(pair, 100),
    { kept: { tokens: [50, 50], isCounted: false } },
    'the vendor counts fewer tokens than we do',
  );
  t.like(billCall(pair.slice(1), 5_000), { kept: { tokens: [5_000], isCounted: false } }, 'alone');
});

test('a cached vector never costs more than its first computation, and never more than our count plus the tolerance if the call had several inputs', (t) => {
  fc.assert(
    fc.property(inputs, fc.integer({ min: 1, max: 100_000 }), (all, reported) => {
      const { tokens, kept } = billCall(all, reported);
      const accounts = new Set(all.map(({ accountId }) => accountId)).size;
      const maxTokens = (ownTokens: number): number =>
        all.length === 1 ? reported : ownTokens + findTolerance(sum(all.map((one) => one.tokens)), accounts);
      t.true(kept.tokens.every((one, i) => one <= tokens[i]! && one <= maxTokens(all[i]!.tokens)));
    }),
  );
});

test('a report of zero tokens is ignored, and all inputs are billed by our count', (t) => {
  const texts = [
    { accountId: 'ann', tokens: 9 },
    { accountId: 'ann', tokens: 60 },
  ];
  t.deepEqual(billCall(texts, 0), billCall(texts, null));
  t.like(billCall(texts, 0), { tokens: [9, 60], isCounted: true, agrees: null });
});

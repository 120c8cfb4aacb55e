import test from 'ava';
import fc from 'fast-check';
import { FairLine, type FairItem } from '../../../workers/embeddings/fair-line.ts';

interface Item extends FairItem {
  readonly number: number;
}

const always = (): boolean => true;

function fill(accounts: readonly string[], tokens = 1): FairLine<Item> {
  const line = new FairLine<Item>();
  accounts.forEach((accountId, number) => line.add({ accountId, tokens, number }));
  return line;
}

test('a call has room for everybody before anybody has a second item in it', (t) => {
  const line = fill([...Array.from({ length: 2_048 }, () => 'heavy'), 'light', 'other']);
  const taken = line.take({ maxInputs: 8, maxTokens: 1_000 }, always);
  t.deepEqual(
    taken.map(({ accountId }) => accountId),
    ['heavy', 'light', 'other', 'heavy', 'heavy', 'heavy', 'heavy', 'heavy'],
  );
  // Who came last to its turn is first in the next call.
  line.add({ accountId: 'light', tokens: 1, number: 9_999 });
  t.deepEqual(
    line.take({ maxInputs: 2, maxTokens: 1_000 }, always).map(({ accountId }) => accountId),
    ['heavy', 'light'],
  );
});

test('nothing is lost, repeated, or taken out of its account’s order, and no call passes a limit that more than one item fills', (t) => {
  const items = fc.array(fc.record({ account: fc.constantFrom('a', 'b', 'c'), tokens: fc.nat(50) }));
  fc.assert(
    fc.property(
      items,
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 120 }),
      (all, maxInputs, maxTokens) => {
        const line = new FairLine<Item>();
        all.forEach(({ account, tokens }, number) => line.add({ accountId: account, tokens, number }));
        const taken: Item[] = [];
        while (line.size > 0) {
          const call = line.take({ maxInputs, maxTokens }, always);
          t.true(call.length > 0 && call.length <= maxInputs);
          t.true(call.length === 1 || call.reduce((sum, { tokens }) => sum + tokens, 0) <= maxTokens);
          taken.push(...call);
        }
        t.deepEqual(
          taken.map(({ number }) => number).sort((a, b) => a - b),
          all.map((_, number) => number),
        );
        for (const account of ['a', 'b', 'c']) {
          const own = taken.filter(({ accountId }) => accountId === account).map(({ number }) => number);
          t.deepEqual(
            own,
            own.toSorted((a, b) => a - b),
          );
        }
      },
    ),
  );
  t.pass();
});

test('what nobody wants any more takes no room in a call', (t) => {
  const line = fill(['a', 'a', 'b', 'a']);
  const taken = line.take({ maxInputs: 2, maxTokens: 10 }, ({ number }) => number !== 0 && number !== 2);
  t.deepEqual(
    taken.map(({ number }) => number),
    [1, 3],
  );
  t.is(line.size, 0);
});

test('a long queue is taken in time that grows with it, and no faster', (t) => {
  const line = fill(Array.from({ length: 300_000 }, () => 'a'));
  let count = 0;
  while (line.size > 0) count += line.take({ maxInputs: 2_048, maxTokens: 1e9 }, always).length;
  t.is(count, 300_000);
});

import test from 'ava';
import fc from 'fast-check';
import { FairLine, type FairItem } from '../../../workers/embeddings/fair-line.ts';

interface Item extends FairItem {
  readonly number: number;
}

const always = (): boolean => true;

function fill(accounts: readonly string[], tokens = 1): FairLine<Item> {
  const line = new FairLine<Item>();
  accounts.forEach((accountId, number) => line.add({ accountId, tokens, number, group: number }));
  return line;
}

test('a call has room for everybody before anybody has a second item in it', (t) => {
  const line = fill([...Array.from({ length: 2_048 }, () => 'heavy'), 'light', 'other']);
  const taken = line.take({ enough: 8, maxInputs: 8, maxTokens: 1_000 }, always);
  t.deepEqual(
    taken.map(({ accountId }) => accountId),
    ['heavy', 'light', 'other', 'heavy', 'heavy', 'heavy', 'heavy', 'heavy'],
  );
  // Who came last to its turn is first in the next call.
  line.add({ accountId: 'light', tokens: 1, number: 9_999, group: null });
  t.deepEqual(
    line.take({ enough: 2, maxInputs: 2, maxTokens: 1_000 }, always).map(({ accountId }) => accountId),
    ['heavy', 'light'],
  );
});

test('nothing is lost, repeated, or taken out of its account’s order, and no call passes a limit that more than one item fills', (t) => {
  const items = fc.array(fc.record({ account: fc.constantFrom('a', 'b', 'c'), tokens: fc.nat(50) }));
  fc.assert(
    fc.property(
      items,
      fc.integer({ min: 1, max: 7 }),
      fc.nat(9),
      fc.integer({ min: 1, max: 120 }),
      fc.integer({ min: 1, max: 9 }),
      (all, enough, more, maxTokens, groupSize) => {
        const line = new FairLine<Item>();
        all.forEach(({ account, tokens }, number) =>
          line.add({ accountId: account, tokens, number, group: Math.floor(number / groupSize) }),
        );
        const taken: Item[] = [];
        while (line.size > 0) {
          const call = line.take({ enough, maxInputs: enough + more, maxTokens }, always);
          t.true(call.length > 0 && call.length <= Math.min(2 * enough, enough + more));
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

test('where everybody has something in a call, the rest of it is many of one account, and then of another', (t) => {
  const line = fill(Array.from({ length: 1_200 }, (_, i) => (i % 2 === 0 ? 'a' : 'b')));
  const takeRuns = (enough: number): [string, number][] => {
    const runs: [string, number][] = [];
    for (const { accountId } of line.take({ enough, maxInputs: enough, maxTokens: 1e9 }, always)) {
      const last = runs.at(-1);
      if (last?.[0] === accountId) last[1] += 1;
      else runs.push([accountId, 1]);
    }
    return runs;
  };
  t.deepEqual(takeRuns(500), [
    ['a', 1],
    ['b', 1],
    ['a', 256],
    ['b', 242],
  ]);
  t.deepEqual(takeRuns(300), [
    ['a', 1],
    ['b', 1],
    ['a', 256],
    ['b', 42],
  ]);
});

test('a group that was begun is ended with the call, unless that takes twice as many as were wanted', (t) => {
  const takeSizes = (groups: readonly number[], enough: number, maxInputs: number): number[] => {
    const line = new FairLine<Item>();
    for (const [group, size] of groups.entries()) {
      for (let i = 0; i < size; i++) line.add({ accountId: 'a', tokens: 1, number: i, group });
    }
    const sizes: number[] = [];
    while (line.size > 0) sizes.push(line.take({ enough, maxInputs, maxTokens: 1e9 }, always).length);
    return sizes;
  };
  t.deepEqual(takeSizes([256, 256, 256, 256], 300, 2_048), [512, 512]);
  t.deepEqual(takeSizes([256, 256, 256, 256], 256, 2_048), [256, 256, 256, 256]);
  t.deepEqual(takeSizes([256, 256], 300, 400), [300, 212]);
  t.deepEqual(takeSizes([2_000, 100], 512, 2_048), [512, 512, 976, 100]);
});

test('who is apart shares calls with others who are: every fourth, and no more of it than their accounts’ part', (t) => {
  const line = new FairLine<Item>((accountId) => accountId.startsWith('x'));
  for (let number = 0; number < 400; number++) {
    for (const accountId of ['a', 'b', 'x1', 'c']) line.add({ accountId, tokens: 1, number, group: number });
  }
  const take = (): string[] =>
    line.take({ enough: 40, maxInputs: 80, maxTokens: 1e9 }, always).map(({ accountId }) => accountId);
  const calls = Array.from({ length: 8 }, take);
  t.deepEqual(
    calls.map((call) => call.includes('x1')),
    [false, false, false, true, false, false, false, true],
  );
  t.deepEqual(
    calls[3],
    Array.from({ length: 10 }, () => 'x1'),
  );
});

test('those who are apart wait for nobody where there is nobody else', (t) => {
  const line = new FairLine<Item>(() => true);
  for (const accountId of ['x1', 'x2', 'x1']) line.add({ accountId, tokens: 1, number: 0, group: null });
  const taken = line.take({ enough: 3, maxInputs: 3, maxTokens: 10 }, always);
  t.deepEqual(
    taken.map(({ accountId }) => accountId),
    ['x1', 'x2', 'x1'],
  );
});

test('an account whose item does not fit beside the others’ is first in the next call', (t) => {
  const line = new FairLine<Item>();
  const accounts = ['a', 'b', 'c', 'd', 'e'];
  for (let number = 0; number < 100; number++) {
    for (const accountId of accounts) line.add({ accountId, tokens: 4_000, number, group: number });
  }
  const counts = new Map(accounts.map((id) => [id, 0]));
  for (let i = 0; i < 60; i++) {
    for (const { accountId } of line.take({ enough: 100, maxInputs: 100, maxTokens: 16_384 }, always)) {
      counts.set(accountId, counts.get(accountId)! + 1);
    }
  }
  t.deepEqual([...counts.values()], [48, 48, 48, 48, 48]);
});

test('what nobody wants any more takes no room in a call', (t) => {
  const line = fill(['a', 'a', 'b', 'a']);
  const taken = line.take(
    { enough: 2, maxInputs: 2, maxTokens: 10 },
    ({ number }) => number !== 0 && number !== 2,
  );
  t.deepEqual(
    taken.map(({ number }) => number),
    [1, 3],
  );
  t.is(line.size, 0);
});

test('a long queue is taken in time that grows with it, and no faster', (t) => {
  const line = fill(Array.from({ length: 300_000 }, () => 'a'));
  let count = 0;
  while (line.size > 0)
    count += line.take({ enough: 2_048, maxInputs: 2_048, maxTokens: 1e9 }, always).length;
  t.is(count, 300_000);
});

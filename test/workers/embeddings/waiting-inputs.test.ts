import test from 'ava';
import fc from 'fast-check';
import {
  WaitingInputs,
  type CallPlan,
  type WaitingInput,
} from '../../../workers/embeddings/waiting-inputs.ts';

/** The inputs of a call made for the account whose fair-queue turn it is. */
const take = (line: WaitingInputs<Item>, plan: CallPlan): Item[] =>
  line.take([...line.accountIds()][0] ?? '', plan);

interface Item extends WaitingInput {
  readonly number: number;
}

const itemOf = (accountId: string, number: number, tokens = 1, group: object = {}): Item => ({
  accountId,
  number,
  tokens,
  group,
  dimensions: null,
  sharesCalls: true,
});

function fill(accounts: readonly string[], tokens = 1): WaitingInputs<Item> {
  const line = new WaitingInputs<Item>();
  accounts.forEach((accountId, number) => line.add(itemOf(accountId, number, tokens)));
  return line;
}

test('every account gets one item into a call before any account gets a second one', (t) => {
  const line = fill([...Array.from({ length: 2_048 }, () => 'heavy'), 'light', 'other']);
  const taken = take(line, { enough: 8, maxInputs: 8, maxTokens: 1_000 });
  t.deepEqual(
    taken.map(({ accountId }) => accountId),
    ['heavy', 'light', 'other', 'heavy', 'heavy', 'heavy', 'heavy', 'heavy'],
  );
  // The account whose turn came last is first in the next call.
  line.add(itemOf('light', 9_999));
  t.deepEqual(
    take(line, { enough: 2, maxInputs: 2, maxTokens: 1_000 }).map(({ accountId }) => accountId),
    ['heavy', 'light'],
  );
});

test('no item is lost, repeated or out of its account’s order, and no call with more than one item exceeds a limit', (t) => {
  const items = fc.array(fc.record({ account: fc.constantFrom('a', 'b', 'c'), tokens: fc.nat(50) }));
  fc.assert(
    fc.property(
      items,
      fc.integer({ min: 1, max: 7 }),
      fc.nat(9),
      fc.integer({ min: 1, max: 120 }),
      fc.integer({ min: 1, max: 9 }),
      (all, enough, more, maxTokens, groupSize) => {
        const line = new WaitingInputs<Item>();
        let group = {};
        let before: string | null = null;
        all.forEach(({ account, tokens }, number) => {
          // The inputs of a request belong to one account and arrive together.
          if (account !== before || number % groupSize === 0) group = {};
          before = account;
          line.add(itemOf(account, number, tokens, group));
        });
        const taken: Item[] = [];
        while (line.size > 0) {
          const call = take(line, { enough, maxInputs: enough + more, maxTokens });
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

test('once every account has an item in a call, the remaining space is filled with many items of one account, then of another', (t) => {
  const line = fill(Array.from({ length: 1_200 }, (_, i) => (i % 2 === 0 ? 'a' : 'b')));
  const takeRuns = (enough: number): [string, number][] => {
    const runs: [string, number][] = [];
    for (const { accountId } of take(line, { enough, maxInputs: enough, maxTokens: 1e9 })) {
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
    ['b', 1],
    ['a', 1],
    ['b', 256],
    ['a', 42],
  ]);
});

test('a group that was started is completed in the same call, unless that takes more than twice the desired size', (t) => {
  const takeSizes = (groups: readonly number[], enough: number, maxInputs: number): number[] => {
    const line = new WaitingInputs<Item>();
    for (const size of groups) {
      const group = {};
      for (let i = 0; i < size; i++) line.add(itemOf('a', i, 1, group));
    }
    const sizes: number[] = [];
    while (line.size > 0) sizes.push(take(line, { enough, maxInputs, maxTokens: 1e9 }).length);
    return sizes;
  };
  t.deepEqual(takeSizes([256, 256, 256, 256], 300, 2_048), [512, 512]);
  t.deepEqual(takeSizes([256, 256, 256, 256], 256, 2_048), [256, 256, 256, 256]);
  t.deepEqual(takeSizes([256, 256], 300, 400), [300, 212]);
  t.deepEqual(takeSizes([2_000, 100], 512, 2_048), [512, 512, 976, 100]);
});

test('accounts share calls only within their cohort, and the cohorts take turns', (t) => {
  const cohorts = new Map([
    ['x1', 1],
    ['x2', 2],
    ['x3', 2],
  ]);
  const line = new WaitingInputs<Item>((accountId) => cohorts.get(accountId) ?? null);
  for (let number = 0; number < 400; number++) {
    for (const accountId of ['a', 'x1', 'b', 'x2', 'x3']) line.add(itemOf(accountId, number));
  }
  const takeAccounts = (): string =>
    [
      ...new Set(take(line, { enough: 4, maxInputs: 8, maxTokens: 1e9 }).map(({ accountId }) => accountId)),
    ].join();
  t.deepEqual(Array.from({ length: 6 }, takeAccounts), ['a,b', 'x1', 'b,a', 'x2,x3', 'x3,x2', 'a,b']);
});

test('unshared inputs are only combined with those of their own account and dimensions, in its turn', (t) => {
  const line = new WaitingInputs<Item>();
  const alone = (accountId: string, number: number, dimensions: number | null = null): Item => ({
    ...itemOf(accountId, number),
    sharesCalls: false,
    dimensions,
  });
  ['a', 'b', 'a', 'b', 'c'].forEach((accountId, number) => line.add(alone(accountId, number)));
  line.add(alone('a', 5, 8));
  ['c', 'd', 'b'].forEach((accountId, i) => line.add(itemOf(accountId, 6 + i)));
  const left = line.add(alone('d', 9));
  t.is(line.queueCount, 6);
  line.remove(left);
  t.is(line.queueCount, 5, 'there are as many calls as queues');
  const calls: number[][] = [];
  while (line.size > 0) {
    calls.push(take(line, { enough: 32, maxInputs: 64, maxTokens: 1e9 }).map(({ number }) => number));
  }
  t.deepEqual(calls, [[0, 2], [1, 3], [4], [7, 6, 8], [5]]);
});

test('a call starts with the account that it is made for, whichever account waits before it', (t) => {
  const line = fill(['a', 'b', 'c', 'd', 'e', 'f']);
  const plan = { enough: 3, maxInputs: 3, maxTokens: 1_000 };
  const takeFor = (accountId: string): string[] => line.take(accountId, plan).map((item) => item.accountId);
  t.deepEqual(takeFor('e'), ['e', 'a', 'b']);
  t.deepEqual(
    takeFor('gone'),
    ['c', 'd', 'f'],
    'the turns of the other accounts, without those that are done',
  );
});

test('an account whose item does not fit beside those of the others is first in the next call', (t) => {
  const line = new WaitingInputs<Item>();
  const accounts = ['a', 'b', 'c', 'd', 'e'];
  for (let number = 0; number < 100; number++) {
    for (const accountId of accounts) line.add(itemOf(accountId, number, 4_000));
  }
  const counts = new Map(accounts.map((id) => [id, 0]));
  for (let i = 0; i < 60; i++) {
    for (const { accountId } of take(line, { enough: 100, maxInputs: 100, maxTokens: 16_384 })) {
      counts.set(accountId, counts.get(accountId)! + 1);
    }
  }
  // Four of the five fit into each of sixty calls.
  t.true(
    [...counts.values()].every((count) => Math.abs(count - 48) <= 1),
    [...counts.values()].join(),
  );
});

test('an item that is no longer needed is removed, wherever it waits', (t) => {
  const line = new WaitingInputs<Item>();
  const entries = ['a', 'a', 'b', 'a'].map((accountId, number) => line.add(itemOf(accountId, number)));
  for (const place of [0, 2, 2]) line.remove(entries[place]!);
  t.is(line.size, 2);
  const taken = take(line, { enough: 2, maxInputs: 2, maxTokens: 10 });
  t.deepEqual(
    taken.map(({ number }) => number),
    [1, 3],
  );
  t.is(line.size, 0);
  t.is(line.queueCount, 0);
  t.deepEqual([...line.accountIds()], []);
});

test('one account’s queues for three hundred dimensions delay another account by one call', (t) => {
  const line = new WaitingInputs<Item>();
  for (let i = 1; i <= 300; i++) line.add({ ...itemOf('many', i), dimensions: i });
  take(line, { enough: 32, maxInputs: 64, maxTokens: 1e9 });
  line.add(itemOf('one', 1_000));
  line.add({ ...itemOf('two', 1_001), dimensions: 300 });
  const calls: Item[][] = [];
  while (line.size > 0) {
    const call = take(line, { enough: 32, maxInputs: 64, maxTokens: 1e9 });
    t.is(new Set(call.map(({ dimensions }) => dimensions)).size, 1);
    calls.push(call);
  }
  const positionOf = (number: number): number =>
    calls.findIndex((call) => call.some((item) => item.number === number));
  t.true(positionOf(1_000) <= 2 && positionOf(1_001) <= 2, `${positionOf(1_000)}, ${positionOf(1_001)}`);
  t.is(calls[positionOf(1_001)]!.length, 2, 'it was merged with the input of the other account');
  t.is(calls.flat().length, 301);
});

test('an account’s queues for different dimensions take turns, however long each is, and none starves beside shared calls', (t) => {
  const line = new WaitingInputs<Item>();
  let number = 0;
  for (const dimensions of [null, 8, 16]) {
    for (let i = 0; i < 100; i++) line.add({ ...itemOf('a', (number += 1)), dimensions });
  }
  const takeDimensions = (): number | null => {
    // The other accounts keep requesting the model's default dimensions.
    for (const accountId of ['b', 'c']) line.add(itemOf(accountId, (number += 1)));
    return take(line, { enough: 4, maxInputs: 4, maxTokens: 1e9 })[0]!.dimensions;
  };
  const taken = Array.from({ length: 24 }, takeDimensions);
  for (const dimensions of [8, 16]) {
    const count = taken.filter((one) => one === dimensions).length;
    t.true(count >= 2, `${dimensions}: ${count} of ${taken.join()}`);
  }
});

test('the time to drain a long queue grows linearly with its length', (t) => {
  const line = fill(Array.from({ length: 300_000 }, () => 'a'));
  let count = 0;
  while (line.size > 0) count += take(line, { enough: 2_048, maxInputs: 2_048, maxTokens: 1e9 }).length;
  t.is(count, 300_000);
});

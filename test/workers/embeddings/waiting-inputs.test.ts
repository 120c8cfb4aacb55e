import test from 'ava';
import fc from 'fast-check';
import {
  WaitingInputs,
  type CallPlan,
  type WaitingInput,
} from '../../../workers/embeddings/waiting-inputs.ts';

/** Takes the items of a call for the given account, or for the account whose turn is next. */
function take(waiting: WaitingInputs<Item>, plan: CallPlan, accountId = ''): Item[] {
  const call = waiting.start(accountId);
  if (call === null) return [];
  waiting.fill(call, plan);
  return call.items;
}

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
  const waiting = new WaitingInputs<Item>();
  accounts.forEach((accountId, number) => waiting.add(itemOf(accountId, number, tokens)));
  return waiting;
}

test('a call takes one item of every account before a second item of any', (t) => {
  const waiting = fill([...Array.from({ length: 2_048 }, () => 'heavy'), 'light', 'other']);
  const taken = take(waiting, { enough: 8, maxInputs: 8, maxTokens: 1_000 });
  t.deepEqual(
    taken.map(({ accountId }) => accountId),
    ['heavy', 'light', 'other', 'heavy', 'heavy', 'heavy', 'heavy', 'heavy'],
  );
  // The heavy account is still first, and the light account queues behind it.
  waiting.add(itemOf('light', 9_999));
  t.deepEqual(
    take(waiting, { enough: 2, maxInputs: 2, maxTokens: 1_000 }).map(({ accountId }) => accountId),
    ['heavy', 'light'],
  );
});

test('no item is lost, repeated or reordered within its account, and calls of several items stay within the limits', (t) => {
  const items = fc.array(fc.record({ account: fc.constantFrom('a', 'b', 'c'), tokens: fc.nat(50) }));
  fc.assert(
    fc.property(
      items,
      fc.integer({ min: 1, max: 7 }),
      fc.nat(9),
      fc.integer({ min: 1, max: 120 }),
      fc.integer({ min: 1, max: 9 }),
      (all, enough, more, maxTokens, groupSize) => {
        const waiting = new WaitingInputs<Item>();
        let group = {};
        let before: string | null = null;
        all.forEach(({ account, tokens }, number) => {
          // The inputs of a request belong to one account and arrive together.
          if (account !== before || number % groupSize === 0) group = {};
          before = account;
          waiting.add(itemOf(account, number, tokens, group));
        });
        const taken: Item[] = [];
        while (waiting.size > 0) {
          const call = take(waiting, { enough, maxInputs: enough + more, maxTokens });
          t.true(call.length > 0 && call.length <= Math.min(2 * enough, enough + more));
          t.true(call.length === 1 || call.reduce((sum, { tokens }) => sum + tokens, 0) <= maxTokens);
          taken.push(...call);
        }
        t.deepEqual(
          taken.map(({ number }) => number).sort((a, b) => a - b),
          all.map((_, number) => number),
        );
        for (const account of ['a', 'b', 'c']) {
          const ownNumbers = taken
            .filter(({ accountId }) => accountId === account)
            .map(({ number }) => number);
          t.deepEqual(
            ownNumbers,
            ownNumbers.toSorted((a, b) => a - b),
          );
        }
      },
    ),
  );
  t.pass();
});

test('after one item per account, a call takes many items in a row from one account, then from the next', (t) => {
  const waiting = fill(Array.from({ length: 1_200 }, (_, i) => (i % 2 === 0 ? 'a' : 'b')));
  const takeRuns = (enough: number): [string, number][] => {
    const runs: [string, number][] = [];
    for (const { accountId } of take(waiting, { enough, maxInputs: enough, maxTokens: 1e9 })) {
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

test('a call takes the rest of a started group, unless it would then have more than twice the intended number of inputs', (t) => {
  const takeSizes = (groups: readonly number[], enough: number, maxInputs: number): number[] => {
    const waiting = new WaitingInputs<Item>();
    for (const size of groups) {
      const group = {};
      for (let i = 0; i < size; i++) waiting.add(itemOf('a', i, 1, group));
    }
    const sizes: number[] = [];
    while (waiting.size > 0) sizes.push(take(waiting, { enough, maxInputs, maxTokens: 1e9 }).length);
    return sizes;
  };
  t.deepEqual(takeSizes([256, 256, 256, 256], 300, 2_048), [512, 512]);
  t.deepEqual(takeSizes([256, 256, 256, 256], 256, 2_048), [256, 256, 256, 256]);
  t.deepEqual(takeSizes([256, 256], 300, 400), [300, 212]);
  t.deepEqual(takeSizes([2_000, 100], 512, 2_048), [512, 512, 976, 100]);
});

test('accounts share calls only within their cohort, and cohorts take turns', (t) => {
  const cohorts = new Map([
    ['x1', 1],
    ['x2', 2],
    ['x3', 2],
  ]);
  const waiting = new WaitingInputs<Item>((accountId) => cohorts.get(accountId) ?? null);
  for (let number = 0; number < 400; number++) {
    for (const accountId of ['a', 'x1', 'b', 'x2', 'x3']) waiting.add(itemOf(accountId, number));
  }
  const takeAccounts = (): string =>
    [
      ...new Set(
        take(waiting, { enough: 4, maxInputs: 8, maxTokens: 1e9 }).map(({ accountId }) => accountId),
      ),
    ].join();
  t.deepEqual(Array.from({ length: 6 }, takeAccounts), ['a,b', 'x1', 'b,a', 'x2,x3', 'x3,x2', 'a,b']);
});

test('inputs that do not share calls are sent only with inputs of the same account and dimensions, and these groups take turns', (t) => {
  const waiting = new WaitingInputs<Item>();
  const unshared = (accountId: string, number: number, dimensions: number | null = null): Item => ({
    ...itemOf(accountId, number),
    sharesCalls: false,
    dimensions,
  });
  ['a', 'b', 'a', 'b', 'c'].forEach((accountId, number) => waiting.add(unshared(accountId, number)));
  waiting.add(unshared('a', 5, 8));
  ['c', 'd', 'b'].forEach((accountId, i) => waiting.add(itemOf(accountId, 6 + i)));
  const removed = waiting.add(unshared('d', 9));
  t.is(waiting.queueCount, 6);
  waiting.remove(removed);
  t.is(waiting.queueCount, 5, 'one call is needed per queue');
  const calls: number[][] = [];
  while (waiting.size > 0) {
    calls.push(take(waiting, { enough: 32, maxInputs: 64, maxTokens: 1e9 }).map(({ number }) => number));
  }
  t.deepEqual(calls, [[0, 2], [1, 3], [4], [7, 6, 8], [5]]);
});

test('a call starts with the given account, even if other accounts are first in the queue', (t) => {
  const waiting = fill(['a', 'b', 'c', 'd', 'e', 'f']);
  const plan = { enough: 3, maxInputs: 3, maxTokens: 1_000 };
  const takeFor = (accountId: string): string[] =>
    take(waiting, plan, accountId).map((item) => item.accountId);
  t.deepEqual(takeFor('e'), ['e', 'a', 'b']);
  t.deepEqual(
    takeFor('gone'),
    ['c', 'd', 'f'],
    'the next accounts in the queue, because this one has nothing waiting',
  );
});

test('an account whose item does not fit in a call is first in the next call', (t) => {
  const waiting = new WaitingInputs<Item>();
  const accounts = ['a', 'b', 'c', 'd', 'e'];
  for (let number = 0; number < 100; number++) {
    for (const accountId of accounts) waiting.add(itemOf(accountId, number, 4_000));
  }
  const counts = new Map(accounts.map((id) => [id, 0]));
  for (let i = 0; i < 60; i++) {
    for (const { accountId } of take(waiting, { enough: 100, maxInputs: 100, maxTokens: 16_384 })) {
      counts.set(accountId, counts.get(accountId)! + 1);
    }
  }
  // Each of the sixty calls takes an item of four of the five accounts.
  t.true(
    [...counts.values()].every((count) => Math.abs(count - 48) <= 1),
    [...counts.values()].join(),
  );
});

test('an input that is no longer needed is removed from any position in the queue', (t) => {
  const waiting = new WaitingInputs<Item>();
  const entries = ['a', 'a', 'b', 'a'].map((accountId, number) => waiting.add(itemOf(accountId, number)));
  for (const index of [0, 2, 2]) waiting.remove(entries[index]!);
  t.is(waiting.size, 2);
  const taken = take(waiting, { enough: 2, maxInputs: 2, maxTokens: 10 });
  t.deepEqual(
    taken.map(({ number }) => number),
    [1, 3],
  );
  t.is(waiting.size, 0);
  t.is(waiting.queueCount, 0);
  t.deepEqual([...waiting.accountIds()], []);
});

test('three hundred different dimensions of one account delay another account by at most two calls', (t) => {
  const waiting = new WaitingInputs<Item>();
  for (let i = 1; i <= 300; i++) waiting.add({ ...itemOf('many', i), dimensions: i });
  take(waiting, { enough: 32, maxInputs: 64, maxTokens: 1e9 });
  waiting.add(itemOf('one', 1_000));
  waiting.add({ ...itemOf('two', 1_001), dimensions: 300 });
  const calls: Item[][] = [];
  while (waiting.size > 0) {
    const call = take(waiting, { enough: 32, maxInputs: 64, maxTokens: 1e9 });
    t.is(new Set(call.map(({ dimensions }) => dimensions)).size, 1);
    calls.push(call);
  }
  const callIndexOf = (number: number): number =>
    calls.findIndex((call) => call.some((item) => item.number === number));
  t.true(callIndexOf(1_000) <= 2 && callIndexOf(1_001) <= 2, `${callIndexOf(1_000)}, ${callIndexOf(1_001)}`);
  t.is(calls[callIndexOf(1_001)]!.length, 2, 'merged with the input of the other account');
  t.is(calls.flat().length, 301);
});

test('the dimensions of one account take turns, and none of them starves while other accounts keep sending inputs', (t) => {
  const waiting = new WaitingInputs<Item>();
  let number = 0;
  for (const dimensions of [null, 8, 16]) {
    for (let i = 0; i < 100; i++) waiting.add({ ...itemOf('a', (number += 1)), dimensions });
  }
  const takeDimensions = (): number | null => {
    // Other accounts keep requesting the model's default.
    for (const accountId of ['b', 'c']) waiting.add(itemOf(accountId, (number += 1)));
    return take(waiting, { enough: 4, maxInputs: 4, maxTokens: 1e9 })[0]!.dimensions;
  };
  const taken = Array.from({ length: 24 }, takeDimensions);
  for (const dimensions of [8, 16]) {
    const count = taken.filter((one) => one === dimensions).length;
    t.true(count >= 2, `${dimensions}: ${count} of ${taken.join()}`);
  }
});

test('the time to take all of a long queue grows linearly with its length', (t) => {
  const waiting = fill(Array.from({ length: 300_000 }, () => 'a'));
  let count = 0;
  while (waiting.size > 0) count += take(waiting, { enough: 2_048, maxInputs: 2_048, maxTokens: 1e9 }).length;
  t.is(count, 300_000);
});

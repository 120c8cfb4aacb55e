import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import fc from 'fast-check';
import { AppError } from '../../../shared/contract/errors.ts';
import { FairBudget, type BudgetShare } from '../../../shared/fairness/fair-budget.ts';

interface Request {
  /** `waits`, `holds`, `released`, or an error code. */
  state: string;
  share: BudgetShare | null;
  readonly caller: AbortController;
  release(): void;
}

const createError = (): AppError => new AppError('queue_full');

const callers: AbortController[] = [];
// Requests that are still waiting would keep this file's process alive until they time out.
test.after.always(() => {
  for (const caller of callers) caller.abort();
});

function request(budget: FairBudget, accountId: string, amount: number, waitMs = 60_000): Request {
  const caller = new AbortController();
  callers.push(caller);
  const pending: Request = {
    state: 'waits',
    share: null,
    caller,
    release: () => {
      pending.state = 'released';
      pending.share?.release();
    },
  };
  budget.acquire(accountId, amount, { signal: caller.signal, waitMs, createError }).then(
    (share) => {
      pending.share = share;
      pending.state = 'holds';
    },
    (error: unknown) => {
      pending.state = error instanceof AppError ? error.code : String(error);
    },
  );
  return pending;
}

const statesOf = (requests: readonly Request[]): string[] => requests.map(({ state }) => state);

test('the capacity is never exceeded, and waiting accounts take turns', async (t) => {
  const budget = new FairBudget({ capacity: 2 });
  let holder = request(budget, 'x', 2);
  const waiting = ['ann', 'ann', 'ann', 'bob', 'bob'].map((id) => request(budget, id, 2));
  const order: number[] = [];
  for (let i = 0; i < waiting.length; i++) {
    await nextTurn();
    holder.release();
    await nextTurn();
    const next = statesOf(waiting).indexOf('holds');
    order.push(next);
    holder = waiting[next]!;
  }
  t.deepEqual(order, [0, 3, 1, 4, 2]);
});

test('an account gets at most half of the capacity that the others do not hold, but at least one reservation', async (t) => {
  const budget = new FairBudget({ capacity: 16 });
  const requests = new Map(
    ['first', 'second', 'third'].map((id) => [id, Array.from({ length: 20 }, () => request(budget, id, 1))]),
  );
  await nextTurn();
  const held = (): number[] =>
    [...requests.values()].map(
      (ofAccount) => statesOf(ofAccount).filter((state) => state === 'holds').length,
    );
  t.deepEqual(held(), [8, 4, 2]);
  requests.get('first')![0]!.release();
  await nextTurn();
  t.deepEqual(held(), [7, 4, 2], 'the released capacity is left for another account');
  const fourth = request(budget, 'fourth', 3);
  await nextTurn();
  t.is(fourth.state, 'holds', 'it does not wait behind accounts that already hold half');

  const narrow = new FairBudget({ capacity: 1 });
  const large = [request(narrow, 'ann', 5), request(narrow, 'ann', 5)];
  await nextTurn();
  t.deepEqual(statesOf(large), ['holds', 'waits']);
});

test('a reservation can grow until the budget is full or its account reaches its limit', (t) => {
  const budget = new FairBudget({ capacity: 16 });
  const ann = budget.tryAcquire('ann', 1)!;
  t.true(ann.tryGrow(12));
  const bob = budget.tryAcquire('bob', 1)!;
  t.false(bob.tryGrow(5), 'only four are left');
  t.is(bob.amount, 1);
  t.true(bob.tryGrow(4));
  t.is(budget.tryAcquire('ann', 1), null);
  t.is(budget.held, 16);
  ann.release();
  ann.release();
  t.false(ann.tryGrow(1));
  t.is(budget.held, 4);
  const [one, two] = [budget.tryAcquire('ann', 3)!, budget.tryAcquire('ann', 1)!];
  t.true(one.tryGrow(4));
  t.false(two.tryGrow(5), 'together they would be more than half of the capacity not held by bob');
});

test('if a reservation shrinks, the capacity goes to waiting requests', async (t) => {
  const budget = new FairBudget({ capacity: 16 });
  const ann = budget.tryAcquire('ann', 16)!;
  const bob = request(budget, 'bob', 6);
  ann.shrink(20);
  t.is(ann.amount, 16);
  ann.shrink(10);
  await nextTurn();
  t.is(bob.state, 'holds');
  t.is(budget.held, 16);
  ann.release();
  ann.shrink(1);
  t.is(budget.held, 6);
});

test('no account has more than the specified number of waiting requests', async (t) => {
  const budget = new FairBudget({ capacity: 1, maxWaitingPerHolder: 256 });
  const requests = Array.from({ length: 258 }, () => request(budget, 'ann', 1));
  await nextTurn();
  t.is(statesOf(requests).filter((state) => state === 'waits').length, 256);
  t.is(requests.at(-1)!.state, 'queue_full');
  const { signal } = new AbortController();
  let isRefused = false;
  const unlimited = budget.acquire('ann', 1, { signal, waitMs: 60_000, maxWaiting: Infinity, createError });
  unlimited.catch(() => {
    isRefused = true;
  });
  await nextTurn();
  t.false(isRefused, 'a request without a limit on waiting requests waits anyway');
  for (const { caller } of requests) caller.abort();
  requests[0]!.release();
  (await unlimited).release();
  t.is(budget.held, 0);
});

test('if reservations may exceed the capacity, an account over its limit waits, but an account that holds nothing never does', async (t) => {
  const budget = new FairBudget({ capacity: 16, mayExceedCapacity: true });
  const many = Array.from({ length: 5 }, () => request(budget, 'many', 2));
  await nextTurn();
  t.deepEqual(statesOf(many), ['holds', 'holds', 'holds', 'holds', 'waits']);
  for (const { share } of many.slice(0, 4)) share!.changeTo(9);
  t.is(budget.held, 36);
  const [few, next] = [request(budget, 'few', 2), request(budget, 'few', 2)];
  await nextTurn();
  t.deepEqual(statesOf([few, next, many[4]!]), ['holds', 'waits', 'waits']);
  few.release();
  await nextTurn();
  t.is(next.state, 'holds', "it waited only for its own account's reservation");
  for (const one of many.slice(0, 3)) one.release();
  await nextTurn();
  t.is(many[4]!.state, 'waits');
  many[3]!.share!.changeTo(5);
  await nextTurn();
  t.is(many[4]!.state, 'holds');
  for (const one of [...many, next]) one.release();
  many[0]!.share!.changeTo(7);
  t.deepEqual([budget.held, budget.waiting], [0, 0]);
});

test('a request that waits too long fails, and a request is removed if its caller disconnects', async (t) => {
  const budget = new FairBudget({ capacity: 1 });
  const holder = budget.tryAcquire('x', 1)!;
  await t.throwsAsync(budget.acquire('ann', 1, { waitMs: 5, createError }), { instanceOf: AppError });
  const gone = request(budget, 'ann', 1);
  gone.caller.abort('gone');
  await nextTurn();
  t.is(gone.state, 'gone');
  t.is(budget.waiting, 0);
  holder.release();
  t.is(budget.held, 0);
});

test('smaller requests overtake one that does not fit yet; after five seconds they may use only a quarter of the capacity, divided between accounts', async (t) => {
  let nowMs = 0;
  const budget = new FairBudget({ capacity: 32, nowMs: () => nowMs });
  const holder = request(budget, 'x', 16);
  const large = request(budget, 'ann', 20);
  const early = request(budget, 'bob', 7);
  await nextTurn();
  t.deepEqual(statesOf([large, early]), ['waits', 'holds'], 'at first, any request that fits overtakes it');
  early.release();
  nowMs += 5_001;
  // Overtaking requests may hold eight units, a quarter of the capacity, although sixteen are unused.
  const overtaking = ['carol', 'carol', 'carol', 'carol', 'dan', 'dan', 'eve'].map((id) =>
    request(budget, id, 2),
  );
  await nextTurn();
  t.deepEqual(statesOf(overtaking), ['holds', 'holds', 'waits', 'waits', 'holds', 'waits', 'holds']);
  t.is(budget.tryAcquire('frank', 1), null, 'the quarter is used up');
  overtaking[0]!.release();
  await nextTurn();
  t.is(overtaking[2]!.state, 'waits', 'the capacity that one of them releases is for another account');
  budget.tryAcquire('frank', 1)!.release();
  holder.release();
  await nextTurn();
  t.is(large.state, 'holds', 'it is granted while the requests that overtook it still hold their capacity');
  t.deepEqual(statesOf(overtaking), ['released', 'holds', 'holds', 'waits', 'holds', 'waits', 'holds']);
});

test('a request for the whole capacity is overtaken only during its first five seconds; others continue once it is cancelled', async (t) => {
  let nowMs = 0;
  const budget = new FairBudget({ capacity: 10, nowMs: () => nowMs });
  const holder = request(budget, 'x', 5);
  const large = request(budget, 'ann', 10);
  nowMs += 5_001;
  const behind = request(budget, 'bob', 2);
  await nextTurn();
  t.deepEqual(statesOf([large, behind]), ['waits', 'waits']);
  large.caller.abort('gone');
  await nextTurn();
  t.deepEqual(statesOf([large, behind]), ['gone', 'holds']);
  for (const one of [holder, behind]) one.release();
  t.is(budget.held, 0);
});

test('an overtaken request is granted once all earlier reservations are released, even if smaller requests keep arriving', async (t) => {
  let nowMs = 0;
  const budget = new FairBudget({ capacity: 16, nowMs: () => nowMs });
  const holders = ['v', 'w', 'x', 'y'].map((id) => request(budget, id, 3));
  const large = request(budget, 'ann', 12);
  nowMs += 5_001;
  for (const holder of holders) {
    // Fills the part of the capacity that overtaking requests may hold, and never releases it.
    request(budget, `before ${holders.indexOf(holder)}`, 1);
    for (let i = 0; i < 20; i++) request(budget, `behind ${i}`, 1);
    await nextTurn();
    t.is(large.state, 'waits');
    holder.release();
  }
  await nextTurn();
  t.is(large.state, 'holds');
  t.true(budget.held <= 16);
});

test('a request is checked before it waits: it fails if the check does, and otherwise waits for its turn', async (t) => {
  const budget = new FairBudget({ capacity: 1 });
  const holder = budget.tryAcquire('x', 1)!;
  let checks = 0;
  const options = { waitMs: 60_000, createError };
  const checkBeforeWaiting = async (): Promise<void> => {
    checks += 1;
    await nextTurn();
  };
  await t.throwsAsync(
    budget.acquire('ann', 1, {
      ...options,
      checkBeforeWaiting: () => Promise.reject(new AppError('insufficient_balance')),
    }),
    { code: 'insufficient_balance' },
  );
  t.is(budget.waiting, 0);
  const caller = new AbortController();
  const gone = budget.acquire('ann', 1, { ...options, signal: caller.signal, checkBeforeWaiting });
  caller.abort(new Error('gone'));
  await t.throwsAsync(gone, { message: 'gone' });
  t.is(budget.waiting, 0);
  const waiting = budget.acquire('ann', 1, { ...options, checkBeforeWaiting });
  holder.release();
  // Capacity that was released during the check is granted immediately.
  const share = await waiting;
  t.is(checks, 2);
  share.release();
  (await budget.acquire('ann', 1, { ...options, checkBeforeWaiting })).release();
  t.is(checks, 2, 'requests that need not wait are not checked');
});

test('an account is contested while another account that holds less is waiting', async (t) => {
  const budget = new FairBudget({ capacity: 10 });
  const ann = budget.tryAcquire('ann', 6)!;
  const bob = budget.tryAcquire('bob', 3)!;
  const again = request(budget, 'ann', 2);
  t.false(budget.isContested('ann'), 'an account does not contest its own reservation');
  t.false(budget.isContested('bob'), 'an account that holds more does not contest one that holds less');
  const carol = request(budget, 'carol', 2);
  t.true(budget.isContested('ann'));
  t.true(budget.isContested('bob'));
  t.deepEqual([budget.heldBy('ann'), budget.heldBy('bob'), budget.heldBy('carol')], [6, 3, 0]);
  bob.release();
  t.is(bob.amount, 0);
  await nextTurn();
  t.is(carol.state, 'holds');
  for (const one of [ann, again, carol]) one.release();
});

test('for any order of requests, the capacity is never exceeded, no request waits forever, and all capacity is returned', async (t) => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('acquire' as const),
      account: fc.constantFrom('a', 'b', 'c'),
      amount: fc.integer({ min: 1, max: 9 }),
    }),
    fc.record({ kind: fc.constant('release' as const), which: fc.nat() }),
    fc.record({ kind: fc.constant('abort' as const), which: fc.nat() }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 6_000 }) }),
    fc.record({ kind: fc.constant('grow' as const), which: fc.nat(), to: fc.integer({ min: 1, max: 12 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      let nowMs = 0;
      const budget = new FairBudget({ capacity: 10, nowMs: () => nowMs });
      const requests: Request[] = [];
      const change = (state: string, which: number, run: (one: Request) => void): boolean => {
        const matching = requests.filter((one) => one.state === state);
        if (matching.length > 0) run(matching[which % matching.length]!);
        return matching.length > 0;
      };
      for (const one of steps) {
        if (one.kind === 'acquire') requests.push(request(budget, one.account, one.amount));
        else if (one.kind === 'pass') nowMs += one.ms;
        else if (one.kind === 'release') change('holds', one.which, (pending) => pending.release());
        else if (one.kind === 'abort') change('waits', one.which, (pending) => pending.caller.abort('gone'));
        else change('holds', one.which, (pending) => void pending.share!.tryGrow(one.to));
        await nextTurn();
        const holding = requests.filter(({ state }) => state === 'holds');
        t.is(
          budget.held,
          holding.reduce((sum, { share }) => sum + share!.amount, 0),
        );
        t.true(budget.held <= 10 || holding.length === 1);
      }
      do await nextTurn();
      while (change('holds', 0, (pending) => pending.release()));
      t.true(requests.every(({ state }) => state === 'released' || state === 'gone'));
      t.is(budget.held, 0);
    }),
  );
});

import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import fc from 'fast-check';
import { IncomingResults, type AcquireMemory } from '../../../api/replies/incoming-results.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { FairBudget } from '../../../shared/fairness/fair-budget.ts';
import { pieceBytes } from '../../../shared/reply/frame.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { waitFor } from '../../support/wait-for.ts';

const log = createLogger('test', 'silent');
const most = 6 * 1024 * 1024;
const piecesAtOnce = most / pieceBytes;
const zeros = Buffer.alloc(pieceBytes);

interface Desk {
  readonly results: IncomingResults;
  /** For which there was no memory, and what their callers are told. */
  readonly refused: readonly [requestId: string, code: string][];
  /** What was asked for since this was last called, in order. */
  readonly takeAsked: () => [requestId: string, upToByte: number][];
  readonly pass: (ms: number) => void;
}

function openDesk(): Desk {
  let nowMs = 1_000;
  let asked: [string, number][] = [];
  const refused: [string, string][] = [];
  const results = new IncomingResults(
    {
      ask: (requestId, upToByte) => asked.push([requestId, upToByte]),
      refuse: (requestId, { code }) => refused.push([requestId, code]),
    },
    log,
    () => nowMs,
  );
  return {
    results,
    refused,
    takeAsked() {
      const taken = asked;
      asked = [];
      return taken;
    },
    pass(ms) {
      nowMs += ms;
    },
  };
}

test('of all results together 6 MB are asked for at once, those of one account in the order in which they were offered', (t) => {
  const { results, takeAsked } = openDesk();
  results.add('a', 'ann', 8 * pieceBytes);
  results.add('b', 'ann', 8 * pieceBytes);
  results.add('c', 'ann', pieceBytes);
  t.deepEqual(takeAsked(), [
    ['a', 8 * pieceBytes],
    ['b', 4 * pieceBytes],
  ]);
  results.take('a', zeros);
  t.deepEqual(takeAsked(), [['b', 5 * pieceBytes]]);
  for (let i = 1; i < 4; i++) results.take('a', zeros);
  results.take('a', zeros);
  t.deepEqual(takeAsked().at(-1), ['c', pieceBytes]);
});

test('accounts take turns of 2 MB: however much one of them has coming, another’s result does not wait for all of it', (t) => {
  const { results, takeAsked } = openDesk();
  results.add('a1', 'ann', 100 * pieceBytes);
  results.add('a2', 'ann', 100 * pieceBytes);
  results.add('b', 'bob', 6 * pieceBytes);
  t.deepEqual(
    takeAsked(),
    [['a1', piecesAtOnce * pieceBytes]],
    'with nobody else there it takes all the room',
  );
  for (let i = 0; i < piecesAtOnce; i++) results.take('a1', zeros);
  // Each piece that came made room for one, in turns.
  const asked = takeAsked().map(([requestId]) => requestId);
  t.deepEqual(asked, Array.from({ length: 6 }, () => ['a1', 'b']).flat());
});

test('what is asked for ends where a piece ends, or the result', (t) => {
  const { results, takeAsked } = openDesk();
  results.add('a', 'ann', pieceBytes + 1);
  results.add('b', 'ann', 100 * pieceBytes + 7);
  // The two bytes of a's pieces that are past a whole piece leave no room for another whole one.
  t.deepEqual(takeAsked(), [
    ['a', pieceBytes + 1],
    ['b', (piecesAtOnce - 2) * pieceBytes],
  ]);
  results.take('a', zeros);
  results.take('a', zeros.subarray(0, 1));
  t.deepEqual(takeAsked(), [
    ['b', (piecesAtOnce - 1) * pieceBytes],
    ['b', piecesAtOnce * pieceBytes],
  ]);
});

test('the last piece brings all of them, in their order; before it, and after it, there is no answer', (t) => {
  const { results } = openDesk();
  const pieces = [Buffer.alloc(pieceBytes, 'a'), Buffer.alloc(pieceBytes, 'b'), Buffer.from('c')];
  results.add('x', 'ann', 2 * pieceBytes + 1);
  t.is(results.take('x', pieces[0]!), null);
  t.is(results.take('x', pieces[1]!), null);
  t.deepEqual(results.take('x', pieces[2]!)?.bytes, Buffer.concat(pieces));
  t.is(results.take('x', pieces[2]!), null);
});

test('a piece of a result that nobody waits for is ignored, and makes no room', (t) => {
  const { results, takeAsked } = openDesk();
  results.add('left', 'ann', pieceBytes);
  results.drop('left');
  results.add('large', 'ann', most);
  results.add('next', 'ann', pieceBytes);
  takeAsked();
  t.is(results.take('left', zeros), null);
  t.is(results.take('never heard of', zeros), null);
  results.drop('never heard of');
  t.deepEqual(takeAsked(), []);
});

test('a result that is dropped gives its room to others at once', (t) => {
  const { results, takeAsked } = openDesk();
  results.add('a', 'ann', most + 1);
  results.add('b', 'ann', most);
  results.take('a', zeros);
  takeAsked();
  results.drop('a');
  t.deepEqual(takeAsked(), [['b', most]]);
});

test('a result that is offered anew begins anew', (t) => {
  const { results, takeAsked } = openDesk();
  results.add('a', 'ann', 2 * pieceBytes);
  results.take('a', Buffer.alloc(pieceBytes, 'old'));
  takeAsked();
  results.add('a', 'ann', most + 5);
  t.deepEqual(takeAsked(), [['a', most]]);
  for (let i = 0; i < piecesAtOnce; i++) t.is(results.take('a', zeros), null);
  const whole = results.take('a', zeros.subarray(0, 5));
  t.is(whole?.bytes.length, most + 5);
  t.false(whole!.bytes.includes('old'));
});

test('what does not come for 2 s is asked for again, after those that waited for its room', (t) => {
  const { results, takeAsked, pass } = openDesk();
  results.add('silent', 'ann', most);
  results.add('next', 'ann', most - pieceBytes);
  t.deepEqual(takeAsked(), [['silent', most]]);
  pass(1_999);
  results.remind();
  t.deepEqual(takeAsked(), []);
  pass(1);
  results.remind();
  t.deepEqual(takeAsked(), [
    ['next', most - pieceBytes],
    ['silent', pieceBytes],
  ]);
});

test('a result of which pieces come is not asked for again', (t) => {
  const { results, takeAsked, pass } = openDesk();
  results.add('slow', 'ann', most);
  for (let i = 1; i < piecesAtOnce; i++) {
    pass(1_900);
    results.take('slow', zeros);
    results.remind();
  }
  t.deepEqual(takeAsked(), [['slow', most]]);
});

test('pieces that come after all are taken, and count once', (t) => {
  const { results, takeAsked, pass } = openDesk();
  results.add('late', 'ann', most + pieceBytes);
  results.add('next', 'ann', most);
  pass(2_000);
  results.remind();
  t.deepEqual(takeAsked().slice(1), [['next', most]]);
  for (let i = 0; i < piecesAtOnce; i++) t.is(results.take('late', zeros), null);
  t.deepEqual(takeAsked(), [], 'all room is of the other');
  results.take('next', zeros);
  t.deepEqual(takeAsked(), [['late', most + pieceBytes]]);
  t.is(results.take('late', zeros)?.bytes.length, most + pieceBytes);
});

test('a result is silent while it is asked for in vain, and not while it waits for its turn', (t) => {
  const { results, pass } = openDesk();
  results.add('first', 'ann', most);
  results.add('second', 'ann', most);
  pass(5_000);
  t.is(results.silentForMs('first'), 5_000);
  t.is(results.silentForMs('second'), 0);
  t.is(results.silentForMs('unknown'), 0);

  results.remind();
  pass(60_000);
  t.is(results.silentForMs('first'), 0, 'it waits behind the second');
  t.is(results.silentForMs('second'), 60_000);

  results.drop('second');
  pass(1_000);
  t.is(results.silentForMs('first'), 6_000, 'both times that it was asked for');
  results.remind();
  pass(1_000);
  t.is(results.silentForMs('first'), 7_000, 'asking again does not make it speak');
  results.take('first', zeros);
  t.is(results.silentForMs('first'), 0);
});

const createAcquire =
  (budget: FairBudget, accountId: string, bytes: number, waitMs = 60_000): AcquireMemory =>
  (signal) =>
    budget.acquire(accountId, bytes, { signal, waitMs, refuse: () => new AppError('queue_full') });

test('a result is asked for once there is memory for it, which is held until the answer is given back', async (t) => {
  const { results, takeAsked } = openDesk();
  const budget = new FairBudget({ capacity: 3 * pieceBytes });
  const add = (id: string, accountId: string): void =>
    results.add(id, accountId, pieceBytes, createAcquire(budget, accountId, pieceBytes));
  add('a1', 'ann');
  add('a2', 'ann');
  add('b', 'bob');
  await nextTurn();
  const asked = (): string[] => takeAsked().map(([requestId]) => requestId);
  t.deepEqual(asked(), ['a1', 'b'], 'an account has half of what there is, and others do not wait for it');
  const first = results.take('a1', zeros)!;
  await nextTurn();
  t.deepEqual(asked(), [], 'its caller has not read it');
  first.release();
  first.release();
  await nextTurn();
  t.deepEqual(asked(), ['a2']);
  for (const id of ['a2', 'b']) results.take(id, zeros)!.release();
  t.is(budget.held, 0);
});

test('a result that waits for memory is not silent, and is not asked for', async (t) => {
  const { results, takeAsked, pass } = openDesk();
  const budget = new FairBudget({ capacity: pieceBytes });
  const other = budget.tryAcquire('other', pieceBytes)!;
  results.add('a', 'ann', pieceBytes, createAcquire(budget, 'ann', pieceBytes));
  pass(120_000);
  results.remind();
  await nextTurn();
  t.deepEqual([takeAsked(), results.silentForMs('a'), results.has('a')], [[], 0, true]);
  other.release();
  await nextTurn();
  t.deepEqual(takeAsked(), [['a', pieceBytes]]);
  pass(1_000);
  t.is(results.silentForMs('a'), 1_000);
});

test('who leaves while it waits for memory, or while its result comes, leaves nothing behind', async (t) => {
  const { results, refused, takeAsked } = openDesk();
  const budget = new FairBudget({ capacity: pieceBytes });
  for (const id of ['coming', 'waiting'])
    results.add(id, id, pieceBytes, createAcquire(budget, id, pieceBytes));
  await nextTurn();
  results.drop('waiting');
  await nextTurn();
  t.is(budget.waiting, 0);
  results.drop('coming');
  t.is(budget.held, 0);
  // Dropped in the moment in which it is granted, and begun anew before that is known.
  results.add('again', 'ann', pieceBytes, createAcquire(budget, 'ann', pieceBytes));
  results.add('again', 'ann', 7, createAcquire(budget, 'ann', 7));
  await nextTurn();
  t.is(budget.held, 7);
  t.deepEqual(takeAsked(), [
    ['coming', pieceBytes],
    ['again', 7],
  ]);
  results.drop('again');
  t.deepEqual([budget.held, refused], [0, []]);
});

test('a result that there is no memory for in time is dropped, and its request is told', async (t) => {
  const { results, refused } = openDesk();
  const budget = new FairBudget({ capacity: pieceBytes });
  const other = budget.tryAcquire('other', pieceBytes)!;
  results.add('a', 'ann', pieceBytes, createAcquire(budget, 'ann', pieceBytes, 1));
  await waitFor('the refusal', () => refused.length > 0);
  t.deepEqual(refused, [['a', 'queue_full']]);
  t.false(results.has('a'));
  other.release();
  t.is(budget.held, 0);
});

/** A worker's side of a result, and what this process may know of it. */
interface Sent {
  length: number;
  /** Bytes that were sent, that is, taken. */
  sent: number;
  /** As the worker heard it. */
  mayBeSentTo: number;
  /** As it was asked for, and not given up. */
  askedTo: number;
  silentMs: number;
}

type Step =
  | { readonly kind: 'add'; readonly id: string; readonly length: number }
  | { readonly kind: 'take' | 'drop'; readonly id: string }
  | { readonly kind: 'pass'; readonly ms: number };

const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('add' as const),
      id,
      length: fc.integer({ min: 1, max: 3 * most }),
    }),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('take' as const), id }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop' as const), id }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 3_000 }) }),
  },
);

test('whatever comes, goes and is lost: never more than 6 MB are on their way, every result completes, and no room is lost', (t) => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 80 }),
      fc.infiniteStream(fc.integer({ min: 0, max: 3 })),
      (steps, chances) => {
        const world = new Map<string, Sent>();
        let nowMs = 0;
        let isLossy = true;
        const results = new IncomingResults(
          {
            ask: (requestId, upToByte) => {
              const one = world.get(requestId)!;
              t.true(upToByte > one.askedTo && upToByte <= one.length);
              one.askedTo = upToByte;
              const onTheWay = [...world.values()].reduce((sum, each) => sum + each.askedTo - each.sent, 0);
              t.true(onTheWay <= most, `${onTheWay} bytes are asked for`);
              const isHeard = !isLossy || chances.next().value !== 0;
              if (isHeard) one.mayBeSentTo = Math.max(one.mayBeSentTo, upToByte);
            },
            refuse: (requestId) => t.fail(requestId),
          },
          log,
          () => nowMs,
        );
        /** @returns whether there was anything to take */
        const take = (requestId: string): boolean => {
          const one = world.get(requestId);
          if (one === undefined) {
            t.is(results.take(requestId, zeros), null);
            return false;
          }
          const length = Math.min(pieceBytes, one.length - one.sent);
          if (one.sent + length > one.mayBeSentTo) return false;
          one.sent += length;
          one.askedTo = Math.max(one.askedTo, one.sent);
          one.silentMs = 0;
          const isLast = one.sent === one.length;
          if (isLast) world.delete(requestId);
          const whole = results.take(requestId, zeros.subarray(0, length));
          t.is(whole?.bytes.length ?? null, isLast ? one.length : null);
          whole?.release();
          return true;
        };
        const pass = (ms: number): void => {
          nowMs += ms;
          for (const one of world.values()) {
            if (one.askedTo === one.sent) continue;
            one.silentMs += ms;
            if (one.silentMs >= 2_000) one.askedTo = one.sent;
          }
          results.remind();
        };

        for (const one of steps) {
          if (one.kind === 'add') {
            const { length } = one;
            world.set(one.id, { length, sent: 0, mayBeSentTo: 0, askedTo: 0, silentMs: 0 });
            results.add(one.id, one.id < 'd' ? 'ann' : 'bob', length);
          } else if (one.kind === 'take') {
            take(one.id);
          } else if (one.kind === 'pass') {
            pass(one.ms);
          } else {
            world.delete(one.id);
            results.drop(one.id);
          }
        }

        isLossy = false;
        for (let i = 0; world.size > 0 && i < 1_000; i++) {
          let isAny = false;
          for (const requestId of world.keys()) isAny = take(requestId) || isAny;
          if (!isAny) pass(2_000);
        }
        t.is(world.size, 0, 'every result came');
        world.set('next', { length: most, sent: 0, mayBeSentTo: 0, askedTo: 0, silentMs: 0 });
        results.add('next', 'ann', most);
        t.is(world.get('next')!.askedTo, most, 'all room is there again');
      },
    ),
    { numRuns: 500 },
  );
  t.pass();
});

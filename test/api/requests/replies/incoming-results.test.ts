import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import fc from 'fast-check';
import { IncomingResults, type AcquireMemory } from '../../../../api/requests/replies/incoming-results.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { FairBudget } from '../../../../shared/fairness/fair-budget.ts';
import { pieceBytes } from '../../../../shared/work/replies/frame.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { waitFor } from '../../../support/wait-for.ts';

const log = createLogger('test', 'silent');
const maxBytes = 6 * 1024 * 1024;
const maxPieces = maxBytes / pieceBytes;
const zeros = Buffer.alloc(pieceBytes);

interface Setup {
  readonly results: IncomingResults;
  /** Requests that failed for lack of memory, with the error code sent to their callers. */
  readonly failedRequests: readonly [requestId: string, code: string][];
  /** The results requested from workers since the last call, in order. */
  readonly takeRequested: () => [requestId: string, upToByte: number][];
  readonly advance: (ms: number) => void;
}

function setUp(): Setup {
  let nowMs = 1_000;
  let requested: [string, number][] = [];
  const failedRequests: [string, string][] = [];
  const results = new IncomingResults(
    {
      ask: (requestId, upToByte) => requested.push([requestId, upToByte]),
      fail: (requestId, { code }) => failedRequests.push([requestId, code]),
    },
    log,
    () => nowMs,
  );
  return {
    results,
    failedRequests,
    takeRequested() {
      const drained = requested;
      requested = [];
      return drained;
    },
    advance(ms) {
      nowMs += ms;
    },
  };
}

test("at most 6 MB are requested at a time across all results, and an account's results are requested in the order offered", (t) => {
  const { results, takeRequested } = setUp();
  results.add('a', 'ann', 8 * pieceBytes);
  results.add('b', 'ann', 8 * pieceBytes);
  results.add('c', 'ann', pieceBytes);
  t.deepEqual(takeRequested(), [
    ['a', 8 * pieceBytes],
    ['b', 4 * pieceBytes],
  ]);
  results.take('a', zeros);
  t.deepEqual(takeRequested(), [['b', 5 * pieceBytes]]);
  for (let i = 1; i < 4; i++) results.take('a', zeros);
  results.take('a', zeros);
  t.deepEqual(takeRequested().at(-1), ['c', pieceBytes]);
});

test('accounts alternate in steps of 2 MB, so that a result need not wait until all results of another account have arrived', (t) => {
  const { results, takeRequested } = setUp();
  results.add('a1', 'ann', 100 * pieceBytes);
  results.add('a2', 'ann', 100 * pieceBytes);
  results.add('b', 'bob', 6 * pieceBytes);
  t.deepEqual(
    takeRequested(),
    [['a1', maxPieces * pieceBytes]],
    'an account uses the whole budget if there is no other',
  );
  for (let i = 0; i < maxPieces; i++) results.take('a1', zeros);
  // Each piece that arrived freed budget for one more piece, alternating between the accounts.
  const requestedIds = takeRequested().map(([requestId]) => requestId);
  t.deepEqual(requestedIds, Array.from({ length: 6 }, () => ['a1', 'b']).flat());
});

test('each request for more pieces ends at a piece boundary, or at the end of the result', (t) => {
  const { results, takeRequested } = setUp();
  results.add('a', 'ann', pieceBytes + 1);
  results.add('b', 'ann', 100 * pieceBytes + 7);
  // After the pieceBytes + 1 bytes of a, the budget left is one byte short of maxPieces - 1 whole pieces.
  t.deepEqual(takeRequested(), [
    ['a', pieceBytes + 1],
    ['b', (maxPieces - 2) * pieceBytes],
  ]);
  results.take('a', zeros);
  results.take('a', zeros.subarray(0, 1));
  t.deepEqual(takeRequested(), [
    ['b', (maxPieces - 1) * pieceBytes],
    ['b', maxPieces * pieceBytes],
  ]);
});

test('`take` returns the whole result with its last piece, and null before and after that', (t) => {
  const { results } = setUp();
  const pieces = [Buffer.alloc(pieceBytes, 'a'), Buffer.alloc(pieceBytes, 'b'), Buffer.from('c')];
  results.add('x', 'ann', 2 * pieceBytes + 1);
  t.is(results.take('x', pieces[0]!), null);
  t.is(results.take('x', pieces[1]!), null);
  t.deepEqual(results.take('x', pieces[2]!)?.bytes, Buffer.concat(pieces));
  t.is(results.take('x', pieces[2]!), null);
});

test('a piece of a result that no caller waits for is ignored, and frees no budget', (t) => {
  const { results, takeRequested } = setUp();
  results.add('cancelled', 'ann', pieceBytes);
  results.drop('cancelled');
  results.add('large', 'ann', maxBytes);
  results.add('next', 'ann', pieceBytes);
  takeRequested();
  t.is(results.take('cancelled', zeros), null);
  t.is(results.take('unknown', zeros), null);
  results.drop('unknown');
  t.deepEqual(takeRequested(), []);
});

test('dropping a result frees its budget for others immediately', (t) => {
  const { results, takeRequested } = setUp();
  results.add('a', 'ann', maxBytes + 1);
  results.add('b', 'ann', maxBytes);
  results.take('a', zeros);
  takeRequested();
  results.drop('a');
  t.deepEqual(takeRequested(), [['b', maxBytes]]);
});

test('a result that is offered again starts from scratch', (t) => {
  const { results, takeRequested } = setUp();
  results.add('a', 'ann', 2 * pieceBytes);
  results.take('a', Buffer.alloc(pieceBytes, 'old'));
  takeRequested();
  results.add('a', 'ann', maxBytes + 5);
  t.deepEqual(takeRequested(), [['a', maxBytes]]);
  for (let i = 0; i < maxPieces; i++) t.is(results.take('a', zeros), null);
  const whole = results.take('a', zeros.subarray(0, 5));
  t.is(whole?.bytes.length, maxBytes + 5);
  t.false(whole!.bytes.includes('old'));
});

test('bytes that do not arrive within 2 s are requested again, but only after results that were waiting for budget', (t) => {
  const { results, takeRequested, advance } = setUp();
  results.add('silent', 'ann', maxBytes);
  results.add('next', 'ann', maxBytes - pieceBytes);
  t.deepEqual(takeRequested(), [['silent', maxBytes]]);
  advance(1_999);
  results.rerequestStalled();
  t.deepEqual(takeRequested(), []);
  advance(1);
  results.rerequestStalled();
  t.deepEqual(takeRequested(), [
    ['next', maxBytes - pieceBytes],
    ['silent', pieceBytes],
  ]);
});

test('a result whose pieces keep arriving is not requested again', (t) => {
  const { results, takeRequested, advance } = setUp();
  results.add('slow', 'ann', maxBytes);
  for (let i = 1; i < maxPieces; i++) {
    advance(1_900);
    results.take('slow', zeros);
    results.rerequestStalled();
  }
  t.deepEqual(takeRequested(), [['slow', maxBytes]]);
});

test('pieces that arrive after they timed out are accepted, and free their budget only once', (t) => {
  const { results, takeRequested, advance } = setUp();
  results.add('late', 'ann', maxBytes + pieceBytes);
  results.add('next', 'ann', maxBytes);
  advance(2_000);
  results.rerequestStalled();
  t.deepEqual(takeRequested().slice(1), [['next', maxBytes]]);
  for (let i = 0; i < maxPieces; i++) t.is(results.take('late', zeros), null);
  t.deepEqual(takeRequested(), [], 'the other result uses the whole budget');
  results.take('next', zeros);
  t.deepEqual(takeRequested(), [['late', maxBytes + pieceBytes]]);
  t.is(results.take('late', zeros)?.bytes.length, maxBytes + pieceBytes);
});

test('the silent time of a result is the time in which it was requested and no piece arrived, without time in the queue', (t) => {
  const { results, advance } = setUp();
  results.add('first', 'ann', maxBytes);
  results.add('second', 'ann', maxBytes);
  advance(5_000);
  t.is(results.silentForMs('first'), 5_000);
  t.is(results.silentForMs('second'), 0);
  t.is(results.silentForMs('unknown'), 0);

  results.rerequestStalled();
  advance(60_000);
  t.is(results.silentForMs('first'), 0, 'the first result is queued behind the second');
  t.is(results.silentForMs('second'), 60_000);

  results.drop('second');
  advance(1_000);
  t.is(results.silentForMs('first'), 6_000, 'the sum of both periods in which it was requested');
  results.rerequestStalled();
  advance(1_000);
  t.is(results.silentForMs('first'), 7_000, 'requesting it again does not reset its silence');
  results.take('first', zeros);
  t.is(results.silentForMs('first'), 0);
});

const createAcquire =
  (budget: FairBudget, accountId: string, bytes: number, waitMs = 60_000): AcquireMemory =>
  (signal) =>
    budget.acquire(accountId, bytes, { signal, waitMs, createError: () => new AppError('queue_full') });

test('a result is requested once memory for it is acquired, which is held until the response is released', async (t) => {
  const { results, takeRequested } = setUp();
  const budget = new FairBudget({ capacity: 3 * pieceBytes });
  const add = (id: string, accountId: string): void =>
    results.add(id, accountId, pieceBytes, createAcquire(budget, accountId, pieceBytes));
  add('a1', 'ann');
  add('a2', 'ann');
  add('b', 'bob');
  await nextTurn();
  const requestedIds = (): string[] => takeRequested().map(([requestId]) => requestId);
  t.deepEqual(
    requestedIds(),
    ['a1', 'b'],
    'an account gets half of the memory, and others do not wait behind it',
  );
  const first = results.take('a1', zeros)!;
  await nextTurn();
  t.deepEqual(requestedIds(), [], 'its caller has not read the first response yet');
  first.release();
  first.release();
  await nextTurn();
  t.deepEqual(requestedIds(), ['a2']);
  for (const id of ['a2', 'b']) results.take(id, zeros)!.release();
  t.is(budget.held, 0);
});

test('while a result waits for memory, it is not requested, and has no silent time', async (t) => {
  const { results, takeRequested, advance } = setUp();
  const budget = new FairBudget({ capacity: pieceBytes });
  const other = budget.tryAcquire('other', pieceBytes)!;
  results.add('a', 'ann', pieceBytes, createAcquire(budget, 'ann', pieceBytes));
  advance(120_000);
  results.rerequestStalled();
  await nextTurn();
  t.deepEqual([takeRequested(), results.silentForMs('a'), results.has('a')], [[], 0, true]);
  other.release();
  await nextTurn();
  t.deepEqual(takeRequested(), [['a', pieceBytes]]);
  advance(1_000);
  t.is(results.silentForMs('a'), 1_000);
});

test('if a result is cancelled while it waits for memory or is arriving, all its memory is released', async (t) => {
  const { results, failedRequests, takeRequested } = setUp();
  const budget = new FairBudget({ capacity: pieceBytes });
  for (const id of ['coming', 'waiting'])
    results.add(id, id, pieceBytes, createAcquire(budget, id, pieceBytes));
  await nextTurn();
  results.drop('waiting');
  await nextTurn();
  t.is(budget.waiting, 0);
  results.drop('coming');
  t.is(budget.held, 0);
  // Offered again just as memory is granted for the first offer, before that grant has been processed.
  results.add('again', 'ann', pieceBytes, createAcquire(budget, 'ann', pieceBytes));
  results.add('again', 'ann', 7, createAcquire(budget, 'ann', 7));
  await nextTurn();
  t.is(budget.held, 7);
  t.deepEqual(takeRequested(), [
    ['coming', pieceBytes],
    ['again', 7],
  ]);
  results.drop('again');
  t.deepEqual([budget.held, failedRequests], [0, []]);
});

test('a result that gets no memory in time is dropped, and its request fails', async (t) => {
  const { results, failedRequests } = setUp();
  const budget = new FairBudget({ capacity: pieceBytes });
  const other = budget.tryAcquire('other', pieceBytes)!;
  results.add('a', 'ann', pieceBytes, createAcquire(budget, 'ann', pieceBytes, 1));
  await waitFor('the rejection', () => failedRequests.length > 0);
  t.deepEqual(failedRequests, [['a', 'queue_full']]);
  t.false(results.has('a'));
  other.release();
  t.is(budget.held, 0);
});

/** The state of a result at the worker, and at this process. */
interface SentResult {
  length: number;
  /** Bytes sent so far, all of which are received. */
  sent: number;
  /** The last limit received by the worker: it may send bytes up to here. */
  mayBeSentTo: number;
  /** The last limit that was requested and has not timed out. */
  requestedTo: number;
  silentMs: number;
}

type Step =
  | { readonly kind: 'add'; readonly id: string; readonly length: number }
  | { readonly kind: 'take' | 'drop'; readonly id: string }
  | { readonly kind: 'advance'; readonly ms: number };

const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('add' as const),
      id,
      length: fc.integer({ min: 1, max: 3 * maxBytes }),
    }),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('take' as const), id }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop' as const), id }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 3_000 }) }),
  },
);

test('under random adds, drops and losses: at most 6 MB are in flight, every result completes, and all budget is released', (t) => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 80 }),
      fc.infiniteStream(fc.integer({ min: 0, max: 3 })),
      (steps, randomChoices) => {
        const sentResults = new Map<string, SentResult>();
        let nowMs = 0;
        let isLossy = true;
        const results = new IncomingResults(
          {
            ask: (requestId, upToByte) => {
              const one = sentResults.get(requestId)!;
              t.true(upToByte > one.requestedTo && upToByte <= one.length);
              one.requestedTo = upToByte;
              const inFlight = [...sentResults.values()].reduce(
                (sum, each) => sum + each.requestedTo - each.sent,
                0,
              );
              t.true(inFlight <= maxBytes, `${inFlight} bytes are in flight`);
              const isDelivered = !isLossy || randomChoices.next().value !== 0;
              if (isDelivered) one.mayBeSentTo = Math.max(one.mayBeSentTo, upToByte);
            },
            fail: (requestId) => t.fail(requestId),
          },
          log,
          () => nowMs,
        );
        /** Delivers the next piece. @returns whether there was one that may be sent */
        const take = (requestId: string): boolean => {
          const one = sentResults.get(requestId);
          if (one === undefined) {
            t.is(results.take(requestId, zeros), null);
            return false;
          }
          const length = Math.min(pieceBytes, one.length - one.sent);
          if (one.sent + length > one.mayBeSentTo) return false;
          one.sent += length;
          one.requestedTo = Math.max(one.requestedTo, one.sent);
          one.silentMs = 0;
          const isLast = one.sent === one.length;
          if (isLast) sentResults.delete(requestId);
          const whole = results.take(requestId, zeros.subarray(0, length));
          t.is(whole?.bytes.length ?? null, isLast ? one.length : null);
          whole?.release();
          return true;
        };
        const advance = (ms: number): void => {
          nowMs += ms;
          for (const one of sentResults.values()) {
            if (one.requestedTo === one.sent) continue;
            one.silentMs += ms;
            if (one.silentMs >= 2_000) one.requestedTo = one.sent;
          }
          results.rerequestStalled();
        };

        for (const one of steps) {
          if (one.kind === 'add') {
            const { length } = one;
            sentResults.set(one.id, { length, sent: 0, mayBeSentTo: 0, requestedTo: 0, silentMs: 0 });
            results.add(one.id, one.id < 'd' ? 'ann' : 'bob', length);
          } else if (one.kind === 'take') {
            take(one.id);
          } else if (one.kind === 'advance') {
            advance(one.ms);
          } else {
            sentResults.delete(one.id);
            results.drop(one.id);
          }
        }

        isLossy = false;
        for (let i = 0; sentResults.size > 0 && i < 1_000; i++) {
          let hasProgressed = false;
          for (const requestId of sentResults.keys()) hasProgressed = take(requestId) || hasProgressed;
          if (!hasProgressed) advance(2_000);
        }
        t.is(sentResults.size, 0, 'every result arrived');
        sentResults.set('next', { length: maxBytes, sent: 0, mayBeSentTo: 0, requestedTo: 0, silentMs: 0 });
        results.add('next', 'ann', maxBytes);
        t.is(sentResults.get('next')!.requestedTo, maxBytes, 'the whole budget is free again');
      },
    ),
    { numRuns: 500 },
  );
  t.pass();
});

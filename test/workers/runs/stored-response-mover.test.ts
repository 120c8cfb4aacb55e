import test from 'ava';
import type { HeartbeatRequest } from '../../../shared/money/reservation-store.ts';
import type { StoredPart } from '../../../shared/work/replies/stored-frames-store.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { StoredResponseMover } from '../../../workers/runs/stored-response-mover.ts';
import { createRequest } from '../../support/stored-responses.ts';
import { waitFor } from '../../support/wait-for.ts';

interface Copy {
  readonly part: StoredPart;
  readonly request: HeartbeatRequest;
  readonly bytes: number;
  readonly succeed: () => void;
  readonly fail: () => void;
}

/** Creates a mover whose copies succeed or fail when the test decides. */
function setUp(): { readonly mover: StoredResponseMover; readonly copies: Copy[] } {
  const copies: Copy[] = [];
  const move = (part: StoredPart, request: HeartbeatRequest, bytes: number): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const copy = {
        part,
        request,
        bytes,
        succeed: () => resolve(true),
        fail: () => reject(new Error('the object store is down')),
      };
      copies.push(copy);
    });
  return { mover: new StoredResponseMover({ move }, createLogger('test', 'silent')), copies };
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('short responses stay in Redis; if the account has many there, all but the shortest move to the object store', async (t) => {
  const { mover, copies } = setUp();
  for (const bytes of [100, 1_024, 1_025, 65_536, 65_537]) {
    mover.queueFrames(createRequest(), { bytes, isAboveMoveThreshold: false });
    mover.queueFrames(createRequest('crowded'), { bytes, isAboveMoveThreshold: true });
  }
  await nextTurn();
  t.deepEqual(
    copies.map(({ request, bytes }) => [request.accountId === 'crowded', bytes]),
    [
      [true, 1_025],
      [true, 65_536],
      [false, 65_537],
      [true, 65_537],
    ],
  );
});

test('a response does not wait behind those of another account', async (t) => {
  const { mover, copies } = setUp();
  for (let i = 0; i < 2_000; i++) mover.queueResponse(createRequest('many'), 1);
  const few = createRequest('few');
  mover.queueResponse(few, 1);
  await nextTurn();
  for (let done = 0; done < 2; done++) {
    copies[done]!.succeed();
    await waitFor('the next copy', () => copies.length > done + 4);
  }
  t.true(copies.some(({ request }) => request === few));
  const stopped = mover.stop();
  for (const { succeed } of copies) succeed();
  await stopped;
});

test('all responses are copied, only a few at a time', async (t) => {
  const { mover, copies } = setUp();
  const requests = Array.from({ length: 20 }, () => createRequest());
  for (const request of requests) mover.queueResponse(request, 1);
  let maxRunning = 0;
  for (let done = 0; done < requests.length; done++) {
    await waitFor('the next copy', () => copies.length > done);
    await nextTurn();
    maxRunning = Math.max(maxRunning, copies.length - done);
    copies[done]!.succeed();
  }
  t.is(maxRunning, 4);
  t.deepEqual(
    copies.map(({ request }) => request),
    requests,
  );
  await mover.stop();
});

test('a failed copy is retried later', async (t) => {
  const { mover, copies } = setUp();
  const request = createRequest();
  mover.queueResponse(request, 7);
  await waitFor('the copy', () => copies.length === 1);
  copies[0]!.fail();
  await waitFor('the second copy', () => copies.length === 2);
  t.like(copies[1], { part: 'answer', request, bytes: 7 });
  copies[1]!.succeed();
  await mover.stop();
});

test('running copies finish on stop, and no more are started', async (t) => {
  const { mover, copies } = setUp();
  for (let i = 0; i < 6; i++) mover.queueResponse(createRequest(), 1);
  await waitFor('the copies', () => copies.length === 4);
  let isStopped = false;
  const stopped = mover.stop().then(() => {
    isStopped = true;
  });
  await nextTurn();
  t.false(isStopped);
  for (const copy of copies) copy.succeed();
  await stopped;
  t.is(copies.length, 4);
});

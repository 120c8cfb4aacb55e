import test from 'ava';
import {
  PendingRequest,
  dropVectors,
  BufferRef,
  PendingInput,
  type EmbeddingTask,
} from '../../../workers/embeddings/embedding-work.ts';

const ask = (inputs: readonly string[], progress?: (done: number) => void): PendingRequest => {
  const signal = new AbortController().signal;
  const rest = {
    user: null,
    dimensions: null,
    isPaidByTime: false,
    inputTokens: [],
    signal,
    stopSignal: signal,
    deadlineAtMs: Infinity,
    log: undefined as never,
    ...(progress && { progress }),
  };
  return new PendingRequest({ accountId: 'ann', inputs, ...rest } satisfies EmbeddingTask);
};

test('the buffer of a call is returned to the pool once all requests with vectors in it have released them, and not before', async (t) => {
  let returnedCount = 0;
  const hold = new BufferRef(() => {
    returnedCount += 1;
  });
  const [first, second, third] = [ask(['a', 'b', 'a']), ask(['b']), ask(['b', 'c'])];
  const [a, b] = [new PendingInput(first, 'a', 1), new PendingInput(first, 'b', 1)];
  a.claim(first, 0);
  a.claim(first, 2);
  b.claim(first, 1);
  b.claim(second, 0);
  b.claim(third, 0);
  third.leave(new Error('it left before'));

  hold.take();
  const outcome = { vector: Buffer.alloc(4), hold, dimensions: 1, tokens: 1, counted: false, billedMs: 3 };
  a.deliver(outcome);
  b.deliver(outcome);
  // Neither a request that was added twice nor one that disconnected in between holds a second reference.
  first.deliver(1, outcome);
  hold.drop();
  t.is(returnedCount, 0);
  dropVectors(await first.answer);
  t.is(returnedCount, 0);
  dropVectors(await third.answer);
  t.is(returnedCount, 0);
  dropVectors(await second.answer);
  t.is(returnedCount, 1);
});

test('a disconnected caller keeps only what was sent to a model, without holding vectors', async (t) => {
  let returnedCount = 0;
  const hold = new BufferRef(() => {
    returnedCount += 1;
  });
  const disconnecting = ask(['a', 'b', 'c']);
  const inputs = ['a', 'b', 'c'].map((text, i) => {
    const input = new PendingInput(disconnecting, text, 1);
    input.claim(disconnecting, i);
    return input;
  });
  const [a, b, c] = inputs as [PendingInput, PendingInput, PendingInput];
  const outcome = { vector: Buffer.alloc(4), hold, dimensions: 1, tokens: 1, counted: false, billedMs: 3 };
  hold.take();
  a.markSent();
  b.markSent();
  a.deliver(outcome);
  const disconnectError = new Error('it left');
  t.deepEqual([...disconnecting.leave(disconnectError)], [c]);
  t.false(b.isNeeded);
  b.deliver(outcome);
  hold.drop();
  t.is(returnedCount, 1);
  const answer = await disconnecting.answer;
  const billed = { ...outcome, vector: Buffer.alloc(0), hold: null };
  t.deepEqual(answer, {
    outcomes: [billed, billed, { error: disconnectError }],
    reachedModel: true,
    hasDisconnected: true,
  });
  dropVectors(answer);
  t.is(returnedCount, 1);
});

test('a caller that disconnects before anything was sent to a model has nothing in flight', async (t) => {
  const disconnecting = ask(['a']);
  const input = new PendingInput(disconnecting, 'a', 1);
  input.claim(disconnecting, 0);
  disconnecting.leave(new Error('it left'));
  t.like(await disconnecting.answer, { reachedModel: false, hasDisconnected: true });
});

test('an input that is requested again after its call failed is requested for the callers that are still waiting', async (t) => {
  const [disconnecting, remaining] = [ask(['a']), ask(['a'])];
  const input = new PendingInput(disconnecting, 'a', 1);
  input.claim(disconnecting, 0);
  input.claim(remaining, 0);
  input.markSent();
  disconnecting.leave(new Error('it left'));
  const failure = new Error('the call failed');
  input.failDisconnected(failure);
  t.deepEqual((await disconnecting.answer).outcomes, [{ error: failure }]);
  t.true(input.isNeeded);
  input.markSent();
  const outcome = {
    vector: Buffer.alloc(4),
    hold: null,
    dimensions: 1,
    tokens: 1,
    counted: false,
    billedMs: 4,
  };
  input.deliver(outcome);
  t.deepEqual(
    (await remaining.answer).outcomes,
    [outcome],
    'all of the time, because it was the only one to request it',
  );
});

test('no input of a failed request is needed any more if it was not sent to a model, except by others that share it', async (t) => {
  const [failing, other] = [ask(['a', 'b', 'c']), ask(['c'])];
  const [a, b, c] = ['a', 'b', 'c'].map((text, i) => {
    const input = new PendingInput(failing, text, 1);
    input.claim(failing, i);
    return input;
  }) as [PendingInput, PendingInput, PendingInput];
  c.claim(other, 0);
  a.markSent();
  const rejection = new Error('refused');
  t.deepEqual([...failing.withdraw(rejection)], [b, c]);
  t.true(a.isNeeded, 'it was sent to a model');
  t.false(b.isNeeded);
  t.true(c.isNeeded, 'by another');
  const outcome = {
    vector: Buffer.alloc(4),
    hold: null,
    dimensions: 1,
    tokens: 1,
    counted: false,
    billedMs: 3,
  };
  a.deliver(outcome);
  c.deliver(outcome);
  const { outcomes } = await failing.answer;
  t.deepEqual(outcomes.slice(1), [{ error: rejection }, { error: rejection }]);
  t.like(outcomes[0], { tokens: 1 });
  t.like((await other.answer).outcomes[0], { tokens: 1 });
});

test('a request is notified how many of its inputs are done, until all are', async (t) => {
  const doneCounts: number[] = [];
  const request = ask(['a', 'b', 'c', 'd'], (done) => doneCounts.push(done));
  const vector = {
    vector: Buffer.alloc(4),
    hold: null,
    dimensions: 1,
    tokens: 1,
    counted: false,
    billedMs: 0,
  };
  for (const index of [2, 0, 0, 3, 1]) request.deliver(index, vector);
  t.deepEqual(doneCounts, [0.25, 0.5, 0.75]);
  t.is((await request.answer).outcomes.length, 4);
});

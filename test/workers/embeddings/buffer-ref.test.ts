import test from 'ava';
import { dropVectors, BufferRef, type EmbeddingTask } from '../../../workers/embeddings/embedding-task.ts';
import { PendingRequest, PendingInput } from '../../../workers/embeddings/embedding-work.ts';

const createRequest = (inputs: readonly string[], progress?: (done: number) => void): PendingRequest => {
  const signal = new AbortController().signal;
  const defaults = {
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
  return new PendingRequest({ accountId: 'ann', inputs, ...defaults } satisfies EmbeddingTask);
};

test('the buffer of a call is released when the last request that received one of its vectors drops them', async (t) => {
  let releases = 0;
  const bufferRef = new BufferRef(() => {
    releases += 1;
  });
  const [first, second, third] = [
    createRequest(['a', 'b', 'a']),
    createRequest(['b']),
    createRequest(['b', 'c']),
  ];
  const [a, b] = [new PendingInput(first, 'a', 1), new PendingInput(first, 'b', 1)];
  a.claim(first, 0);
  a.claim(first, 2);
  b.claim(first, 1);
  b.claim(second, 0);
  b.claim(third, 0);
  third.leave(new Error('disconnected before'));

  bufferRef.take();
  const outcome = {
    vector: Buffer.alloc(4),
    bufferRef,
    dimensions: 1,
    tokens: 1,
    counted: false,
    billedMs: 3,
    vendorCostNano: null,
  };
  a.deliver(outcome);
  b.deliver(outcome);
  // Delivering the same input again adds no second reference to the buffer. A cancelled request holds no reference.
  first.deliver(1, outcome);
  bufferRef.drop();
  t.is(releases, 0);
  dropVectors(await first.answer);
  t.is(releases, 0);
  dropVectors(await third.answer);
  t.is(releases, 0);
  dropVectors(await second.answer);
  t.is(releases, 1);
});

test('a cancelled request gets the outcomes of the inputs already sent to a model, without vectors, and the cancellation error for all other inputs', async (t) => {
  let releases = 0;
  const bufferRef = new BufferRef(() => {
    releases += 1;
  });
  const cancelled = createRequest(['a', 'b', 'c']);
  const inputs = ['a', 'b', 'c'].map((text, i) => {
    const input = new PendingInput(cancelled, text, 1);
    input.claim(cancelled, i);
    return input;
  });
  const [a, b, c] = inputs as [PendingInput, PendingInput, PendingInput];
  const outcome = {
    vector: Buffer.alloc(4),
    bufferRef,
    dimensions: 1,
    tokens: 1,
    counted: false,
    billedMs: 3,
    vendorCostNano: null,
  };
  bufferRef.take();
  a.markSent();
  b.markSent();
  a.deliver(outcome);
  const reason = new Error('disconnected');
  t.deepEqual([...cancelled.leave(reason)], [c]);
  t.false(b.isNeeded);
  b.deliver(outcome);
  bufferRef.drop();
  t.is(releases, 1);
  const result = await cancelled.answer;
  const billed = { ...outcome, vector: Buffer.alloc(0), bufferRef: null };
  t.deepEqual(result, {
    outcomes: [billed, billed, { error: reason }],
    reachedModel: true,
    hasDisconnected: true,
  });
  dropVectors(result);
  t.is(releases, 1);
});

test('a request cancelled before any input was sent is reported as not having reached a model', async (t) => {
  const cancelled = createRequest(['a']);
  const input = new PendingInput(cancelled, 'a', 1);
  input.claim(cancelled, 0);
  cancelled.leave(new Error('disconnected'));
  t.like(await cancelled.answer, { reachedModel: false, hasDisconnected: true });
});

test('after a failed call, an input is retried only for the requests that still wait for it', async (t) => {
  const [cancelled, waiting] = [createRequest(['a']), createRequest(['a'])];
  const input = new PendingInput(cancelled, 'a', 1);
  input.claim(cancelled, 0);
  input.claim(waiting, 0);
  input.markSent();
  cancelled.leave(new Error('disconnected'));
  const failure = new Error('the call failed');
  input.failDisconnected(failure);
  t.deepEqual((await cancelled.answer).outcomes, [{ error: failure }]);
  t.true(input.isNeeded);
  input.markSent();
  const outcome = {
    vector: Buffer.alloc(4),
    bufferRef: null,
    dimensions: 1,
    tokens: 1,
    counted: false,
    billedMs: 4,
    vendorCostNano: null,
  };
  input.deliver(outcome);
  t.deepEqual(
    (await waiting.answer).outcomes,
    [outcome],
    'the request is billed for the whole time, because the input was retried for this request alone',
  );
});

test('unsent inputs of a failed request are no longer needed, unless other requests share them', async (t) => {
  const [failing, other] = [createRequest(['a', 'b', 'c']), createRequest(['c'])];
  const [a, b, c] = ['a', 'b', 'c'].map((text, i) => {
    const input = new PendingInput(failing, text, 1);
    input.claim(failing, i);
    return input;
  }) as [PendingInput, PendingInput, PendingInput];
  c.claim(other, 0);
  a.markSent();
  const refused = new Error('refused');
  t.deepEqual([...failing.withdraw(refused)], [b, c]);
  t.true(a.isNeeded, 'it was sent to a model');
  t.false(b.isNeeded);
  t.true(c.isNeeded, 'another request needs it');
  const outcome = {
    vector: Buffer.alloc(4),
    bufferRef: null,
    dimensions: 1,
    tokens: 1,
    counted: false,
    billedMs: 3,
    vendorCostNano: null,
  };
  a.deliver(outcome);
  c.deliver(outcome);
  const { outcomes } = await failing.answer;
  t.deepEqual(outcomes.slice(1), [{ error: refused }, { error: refused }]);
  t.like(outcomes[0], { tokens: 1 });
  t.like((await other.answer).outcomes[0], { tokens: 1 });
});

test('a request is notified of its progress until all of its inputs are done', async (t) => {
  const progressValues: number[] = [];
  const request = createRequest(['a', 'b', 'c', 'd'], (done) => progressValues.push(done));
  const vector = {
    vector: Buffer.alloc(4),
    bufferRef: null,
    dimensions: 1,
    tokens: 1,
    counted: false,
    billedMs: 0,
    vendorCostNano: null,
  };
  for (const index of [2, 0, 0, 3, 1]) request.deliver(index, vector);
  t.deepEqual(progressValues, [0.25, 0.5, 0.75]);
  t.is((await request.answer).outcomes.length, 4);
});

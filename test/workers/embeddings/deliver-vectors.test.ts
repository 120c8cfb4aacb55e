import test from 'ava';
import fc from 'fast-check';
import { AppError } from '../../../shared/contract/errors.ts';
import { billCall } from '../../../workers/embeddings/bill-call.ts';
import { deliverVectors, describeInvalidVector } from '../../../workers/embeddings/deliver-vectors.ts';
import {
  isInputRejection,
  type EmbeddingTask,
  type InputOutcome,
} from '../../../workers/embeddings/embedding-task.ts';
import { PendingRequest, PendingInput } from '../../../workers/embeddings/embedding-work.ts';
import { findInvalidVectors } from '../../../workers/upstreams/finite-vectors.ts';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';

const task: Omit<EmbeddingTask, 'inputs'> = {
  accountId: 'ann',
  dimensions: null,
  isPaidByTime: false,
  user: null,
  inputTokens: [],
  signal: new AbortController().signal,
  stopSignal: new AbortController().signal,
  deadlineAtMs: Infinity,
  log: undefined as never,
};

/** Delivers each vector of one call to its own request. @returns the outcome of each request */
async function deliver(vectors: readonly (readonly number[])[]): Promise<InputOutcome[]> {
  const inputs: PendingInput[] = [];
  const requests = vectors.map((_, i) => {
    const request = new PendingRequest({ ...task, inputs: [`text ${i}`] });
    const input = new PendingInput(request, `text ${i}`, 1);
    input.claim(request, 0);
    inputs.push(input);
    return request;
  });
  const bytes = Buffer.from(Float32Array.from(vectors.flat()).buffer);
  const dimensions = vectors[0]!.length;
  const broken = findInvalidVectors(bytes, dimensions);
  const response = { vectors: bytes, dimensions, broken, promptTokens: null, release: null };
  for (const input of deliverVectors(inputs, response, billCall(inputs, null), null, {
    tookMs: 10,
    vendorCostNano: null,
  }).broken) {
    input.fail(describeInvalidVector);
  }
  const results = await Promise.all(requests.map((request) => request.answer));
  return results.map((result) => result.outcomes[0]!);
}

test('in a shared call, only inputs with a non-finite vector fail', async (t) => {
  for (const wrong of [NaN, Infinity, -Infinity, 3.5e38]) {
    const [good, bad, other] = await deliver([
      [1, -2],
      [0.5, wrong],
      [3, 4],
    ]);
    t.like(good, { vector: Buffer.from(Float32Array.of(1, -2).buffer), tokens: 1 });
    t.like(other, { vector: Buffer.from(Float32Array.of(3, 4).buffer), tokens: 1 });
    const error = (bad as { error: AppError }).error;
    t.true(error instanceof AppError);
    t.is(error.code, 'upstream_rejected');
    t.true(isInputRejection(error));
  }
});

test('the inputs with a vector share the cost of the call exactly, and requests share that of a common input', async (t) => {
  const alone = new PendingRequest({ ...task, inputs: ['a', 'b'] });
  const other = new PendingRequest({ ...task, inputs: ['b'] });
  const [first, shared, broken] = [
    new PendingInput(alone, 'a', 3),
    new PendingInput(alone, 'b', 4),
    new PendingInput(other, 'c', 5),
  ];
  first.claim(alone, 0);
  shared.claim(alone, 1);
  shared.claim(other, 0);
  const response = {
    vectors: Buffer.from(Float32Array.of(1, 2, NaN).buffer),
    dimensions: 1,
    broken: [2],
    promptTokens: 12,
    release: null,
  };
  const inputs = [first, shared, broken];
  deliverVectors(inputs, response, billCall(inputs, 12), null, { tookMs: 10, vendorCostNano: 1_000n });
  const costsOf = async (request: PendingRequest) =>
    (await request.answer).outcomes.map((one) => ('vector' in one ? one.vendorCostNano : null));
  const [ofAlone, ofOther] = [await costsOf(alone), await costsOf(other)];
  t.deepEqual(ofAlone, [428n, 286n]);
  t.deepEqual(ofOther, [286n]);
});

test('the error of each request states which of its own inputs has a non-finite vector', async (t) => {
  const first = new PendingRequest({ ...task, inputs: [] });
  const [good, bad] = [new PendingInput(first, 'good', 1), new PendingInput(first, 'bad', 1)];
  const requests = [['good', 'bad'], ['bad', 'good', 'bad'], ['bad']].map((inputs) => {
    const request = new PendingRequest({ ...task, inputs });
    for (const [i, text] of inputs.entries()) (text === 'good' ? good : bad).claim(request, i);
    return request;
  });
  const vectors = Buffer.from(Float32Array.of(1, NaN).buffer);
  const response = { vectors, dimensions: 1, broken: [1], promptTokens: null, release: null };
  const delivery = deliverVectors([good, bad], response, billCall([good, bad], null), null, {
    tookMs: 10,
    vendorCostNano: null,
  });
  t.deepEqual(delivery.broken, [bad]);
  bad.fail(describeInvalidVector);
  const results = await Promise.all(requests.map((request) => request.answer));
  const toMessage = (input: string) => `The model returned a vector with non-finite numbers for ${input}.`;
  t.deepEqual(
    results.map(({ outcomes }) =>
      outcomes.flatMap((outcome) => ('error' in outcome ? (outcome.error as AppError).message : [])),
    ),
    [[toMessage('input.1')], [toMessage('input.0'), toMessage('input.2')], [toMessage('the input')]],
  );
});

test('a call without any finite vector is an upstream failure', async (t) => {
  const error = await t.throwsAsync(
    deliver([
      [NaN, 0],
      [Infinity, 0],
    ]),
    { instanceOf: UpstreamError },
  );
  t.is(error?.failure, 'unavailable');
});

test('a vector is accepted if and only if all of its numbers are finite', async (t) => {
  const isAccepted = async (numbers: readonly number[]): Promise<boolean> =>
    'vector' in (await deliver([numbers, numbers.map(() => 0)]))[0]!;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.float(), { minLength: 1, maxLength: 5 }), async (numbers) => {
      t.is(await isAccepted(numbers), numbers.every(Number.isFinite));
    }),
  );
  t.false(await isAccepted([0, NaN]));
  t.true(await isAccepted([3.4028234663852886e38, -3.4028234663852886e38, 2 ** -149, -0]));
});

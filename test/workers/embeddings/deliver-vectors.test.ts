import test from 'ava';
import fc from 'fast-check';
import { AppError } from '../../../shared/contract/errors.ts';
import { billCall } from '../../../workers/embeddings/bill-call.ts';
import { deliverVectors, describeBroken } from '../../../workers/embeddings/deliver-vectors.ts';
import {
  PendingRequest,
  isRefusal,
  PendingInput,
  type EmbeddingTask,
  type InputOutcome,
} from '../../../workers/embeddings/embedding-work.ts';
import { findBroken } from '../../../workers/upstreams/finite-vectors.ts';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';

const ask: Omit<EmbeddingTask, 'inputs'> = {
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

/** Delivers each vector to its own request, all from one call. @returns the result of each request */
async function deliver(vectors: readonly (readonly number[])[]): Promise<InputOutcome[]> {
  const units: PendingInput[] = [];
  const asks = vectors.map((_, i) => {
    const inFlight = new PendingRequest({ ...ask, inputs: [`text ${i}`] });
    const unit = new PendingInput(inFlight, `text ${i}`, 1);
    unit.claim(inFlight, 0);
    units.push(unit);
    return inFlight;
  });
  const bytes = Buffer.from(Float32Array.from(vectors.flat()).buffer);
  const dimensions = vectors[0]!.length;
  const broken = findBroken(bytes, dimensions);
  const answer = { vectors: bytes, dimensions, broken, promptTokens: null, release: null };
  for (const unit of deliverVectors(units, answer, billCall(units, null), null, 10).broken) {
    unit.fail(describeBroken);
  }
  const answers = await Promise.all(asks.map((inFlight) => inFlight.answer));
  return answers.map((answer) => answer.outcomes[0]!);
}

test('of the inputs that share a call, only those whose vector is not finite fail', async (t) => {
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
    t.true(isRefusal(error));
  }
});

test('the error of each request identifies which of its own inputs has a vector that is not finite', async (t) => {
  const first = new PendingRequest({ ...ask, inputs: [] });
  const [good, bad] = [new PendingInput(first, 'good', 1), new PendingInput(first, 'bad', 1)];
  const requests = [['good', 'bad'], ['bad', 'good', 'bad'], ['bad']].map((inputs) => {
    const inFlight = new PendingRequest({ ...ask, inputs });
    for (const [i, text] of inputs.entries()) (text === 'good' ? good : bad).claim(inFlight, i);
    return inFlight;
  });
  const vectors = Buffer.from(Float32Array.of(1, NaN).buffer);
  const answer = { vectors, dimensions: 1, broken: [1], promptTokens: null, release: null };
  const delivery = deliverVectors([good, bad], answer, billCall([good, bad], null), null, 10);
  t.deepEqual(delivery.broken, [bad]);
  bad.fail(describeBroken);
  const answers = await Promise.all(requests.map((inFlight) => inFlight.answer));
  const said = (input: string) => `The model gave ${input} a vector that is not all finite numbers.`;
  t.deepEqual(
    answers.map(({ outcomes }) =>
      outcomes.flatMap((outcome) => ('error' in outcome ? (outcome.error as AppError).message : [])),
    ),
    [[said('input.1')], [said('input.0'), said('input.2')], [said('the input')]],
  );
});

test('a call without any finite vector is a failure of its upstream', async (t) => {
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
  const isTaken = async (numbers: readonly number[]): Promise<boolean> =>
    'vector' in (await deliver([numbers, numbers.map(() => 0)]))[0]!;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.float(), { minLength: 1, maxLength: 5 }), async (numbers) => {
      t.is(await isTaken(numbers), numbers.every(Number.isFinite));
    }),
  );
  t.false(await isTaken([0, NaN]));
  t.true(await isTaken([3.4028234663852886e38, -3.4028234663852886e38, 2 ** -149, -0]));
});

import { PassThrough } from 'node:stream';
import test from 'ava';
import { RejectedBodies } from '../../../../api/admission/rejected-bodies.ts';
import { defaultBodyTimes } from '../../../../api/http/bodies/body-pace.ts';
import { parseBody } from '../../../../api/http/middleware/parse-body.ts';
import type { ApiContext } from '../../../../api/http/request/context.ts';
import type { Services } from '../../../../api/services.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { operations } from '../../../../api/contract/operations.ts';
import { FairBudget } from '../../../../shared/fairness/fair-budget.ts';
import { waitFor } from '../../../support/wait-for.ts';

/** The admission script's result for an account within its limits. */
const admitted = ['ok', 60, 59, 1, '1000000000', 0, 0, 1];

/** A request with a large body that is being read, and the memory budget of request bodies. */
function startReading(handle: () => Promise<void> = async () => undefined) {
  const requestMemory = new FairBudget({ capacity: 100_000_000 });
  const redis = { evalsha: async () => admitted };
  const funded = { note: () => undefined };
  const rejectedBodies = new RejectedBodies({ log: { warn: () => undefined }, nowMs: () => 0 });
  const services = { requestMemory, rejectedBodies, bodyTimes: defaultBodyTimes, redis, funded };
  const body = new PassThrough();
  const closed = new AbortController();
  const context = {
    req: Object.assign(body, { headers: {}, httpVersion: '1.1', complete: false }),
    request: { length: 1_000_000, charset: '' },
    state: { signal: closed.signal, holder: { accountId: 'an-account', keyHash: 'x' } },
    is: () => 'application/json',
    get: () => '',
    set: () => undefined,
  } as unknown as ApiContext;
  const step = parseBody(services as unknown as Services, operations.createEmbedding);
  const read = Promise.resolve(step(context as never, handle));
  const closeResponse = (): void => closed.abort(new AppError('job_cancelled'));
  body.write(`{"model":"${'a'.repeat(300_000)}`);
  return { requestMemory, rejectedBodies, body, closeResponse, read };
}

test('a large body holds its memory until reading has stopped, even if the response was sent earlier', async (t) => {
  const { requestMemory, body, closeResponse, read } = startReading();
  await waitFor('the first part of the body', () => requestMemory.held > 300_000);
  closeResponse();
  t.true(requestMemory.held > 300_000);
  body.destroy();
  t.is((await t.throwsAsync(read, { instanceOf: AppError }))?.code, 'job_cancelled');
  t.is(requestMemory.held, 0);
});

test('the remainder of a large body is not read once the response has been sent', async (t) => {
  const { requestMemory, body, closeResponse, read } = startReading();
  await waitFor('the first part of the body', () => requestMemory.held > 300_000);
  closeResponse();
  body.write('more');
  t.is((await t.throwsAsync(read, { instanceOf: AppError }))?.code, 'job_cancelled');
  t.is(requestMemory.held, 0);
});

test('a large body that was read holds its memory until the response has been sent', async (t) => {
  const { requestMemory, body, closeResponse, read } = startReading();
  body.end('"}');
  await read;
  t.true(requestMemory.held > 300_000);
  closeResponse();
  t.is(requestMemory.held, 0);
});

const isSlowedDown = (bodies: RejectedBodies): Promise<boolean> =>
  bodies.waitToSend('an-account', 1, AbortSignal.abort()).then(
    () => false,
    () => true,
  );

for (const [what, error, slows] of [
  ['refused because of its content', new AppError('validation_failed'), true],
  ['abandoned by its caller', new AppError('job_cancelled'), true],
  ['failed by a vendor', new AppError('upstream_error'), false],
  ['served', null, false],
] as const) {
  test(`a large body whose request is ${what} ${slows ? 'counts' : 'does not count'} as sent for nothing`, async (t) => {
    const { rejectedBodies, body, read } = startReading(async () => {
      if (error !== null) throw error;
    });
    // Just below what an account may have refused in one go.
    rejectedBodies.add('an-account', 31_800_000);
    body.end('"}');
    await read.catch(() => undefined);
    t.is(await isSlowedDown(rejectedBodies), slows);
  });
}

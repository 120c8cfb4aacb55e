import test from 'ava';
import { awaitResponse } from '../../../api/endpoints/await-response.ts';
import { receiveWhole } from '../../../api/replies/receive-whole.ts';
import { AppError } from '../../../shared/contract/errors.ts';

/** A request that is cancelled as those of the product are: its answer fails. */
function createRequest() {
  const { receiver, answer } = receiveWhole();
  let cancelled = 0;
  const cancel = (): void => {
    cancelled += 1;
    receiver.fail(new AppError('job_cancelled'));
  };
  return { request: { answer, cancel }, receiver, cancelled: () => cancelled };
}

test('a request whose caller left before it was waited for is cancelled, and the wait ends', async (t) => {
  const { request, cancelled } = createRequest();
  await t.throwsAsync(awaitResponse(request, AbortSignal.abort()), { code: 'job_cancelled' });
  t.is(cancelled(), 1);
});

test('a request whose caller leaves while it is waited for is cancelled once', async (t) => {
  const { request, cancelled } = createRequest();
  const caller = new AbortController();
  const waiting = awaitResponse(request, caller.signal);
  caller.abort();
  await t.throwsAsync(waiting, { code: 'job_cancelled' });
  t.is(cancelled(), 1);
});

test('an answered request is not cancelled when its caller’s connection closes later', async (t) => {
  const { request, receiver, cancelled } = createRequest();
  const caller = new AbortController();
  const waiting = awaitResponse(request, caller.signal);
  const whole = { bytes: Buffer.from('{}'), release: () => undefined };
  receiver.end(whole);
  t.is(await waiting, whole);
  caller.abort();
  t.is(cancelled(), 0);
});

test('an answer that comes after its caller was told of a failure gives its memory back', async (t) => {
  const { receiver, answer } = receiveWhole();
  let given = 0;
  receiver.fail(new AppError('service_unavailable'));
  receiver.end({ bytes: Buffer.from('{}'), release: () => (given += 1) });
  await t.throwsAsync(answer, { code: 'service_unavailable' });
  t.is(given, 1);
});

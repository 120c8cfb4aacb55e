import test from 'ava';
import { awaitResponse } from '../../../api/responses/await-response.ts';
import { receiveWhole } from '../../../api/requests/replies/receive-whole.ts';
import { AppError } from '../../../shared/contract/errors.ts';

/** A request whose response fails when the request is cancelled, as in production. */
function createRequest() {
  const { receiver, answer } = receiveWhole();
  let cancelled = 0;
  const cancel = (): void => {
    cancelled += 1;
    receiver.fail(new AppError('job_cancelled'));
  };
  return { request: { answer, cancel }, receiver, cancelled: () => cancelled };
}

test('if the caller disconnected before the wait, the request is cancelled, and the wait ends', async (t) => {
  const { request, cancelled } = createRequest();
  await t.throwsAsync(awaitResponse(request, AbortSignal.abort()), { code: 'job_cancelled' });
  t.is(cancelled(), 1);
});

test('if the caller disconnects during the wait, the request is cancelled once', async (t) => {
  const { request, cancelled } = createRequest();
  const caller = new AbortController();
  const waiting = awaitResponse(request, caller.signal);
  caller.abort();
  await t.throwsAsync(waiting, { code: 'job_cancelled' });
  t.is(cancelled(), 1);
});

test('if the caller’s connection closes after the request has completed, the request is not cancelled', async (t) => {
  const { request, receiver, cancelled } = createRequest();
  const caller = new AbortController();
  const waiting = awaitResponse(request, caller.signal);
  const whole = { bytes: Buffer.from('{}'), release: () => undefined };
  receiver.end(whole);
  t.is(await waiting, whole);
  caller.abort();
  t.is(cancelled(), 0);
});

test('if a response arrives after its request has failed, the memory of the response is released', async (t) => {
  const { receiver, answer } = receiveWhole();
  let releases = 0;
  receiver.fail(new AppError('service_unavailable'));
  receiver.end({ bytes: Buffer.from('{}'), release: () => (releases += 1) });
  await t.throwsAsync(answer, { code: 'service_unavailable' });
  t.is(releases, 1);
});

import test from 'ava';
import { AppError } from '../../../../shared/contract/errors.ts';
import { waitForLookUp } from '../../../../shared/platform/storage/wait-for-look-up.ts';
import { within } from '../../../../shared/platform/runtime/within.ts';

const never = new Promise<string>(() => undefined);
const longMs = 600_000;

test('work that finishes in time returns its result or its error', async (t) => {
  const late = (): never => t.fail();
  t.is(await within(longMs, Promise.resolve('done'), late), 'done');
  await t.throwsAsync(within(longMs, Promise.reject(new Error('broken')), late), { message: 'broken' });
});

test('if the work takes too long, the result of the fallback is returned, or its error is thrown', async (t) => {
  t.is(await within(1, never, () => 'instead'), 'instead');
  const fail = (): never => {
    throw new Error('too late');
  };
  await t.throwsAsync(within(1, never, fail), { message: 'too late' });
  const error = await t.throwsAsync(waitForLookUp(1, 'the look-up', never), { instanceOf: AppError });
  t.is(error.code, 'service_unavailable');
  t.is(error.message, 'the look-up took longer than 1 ms');
});

test('a failure of the work after the time limit has no effect', async (t) => {
  let fail!: (error: Error) => void;
  const work = new Promise<string>((_, reject) => {
    fail = reject;
  });
  t.is(await within(1, work, () => 'instead'), 'instead');
  fail(new Error('later'));
  await new Promise((resolve) => setImmediate(resolve));
});

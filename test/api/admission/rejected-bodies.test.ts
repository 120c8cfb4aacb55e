import test from 'ava';
import { RejectedBodies } from '../../../api/admission/rejected-bodies.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { captureLog } from '../../support/captured-log.ts';

const megabyte = 1_000_000;
const open = new AbortController().signal;

function create(options: { readonly maxWaitMs?: number } = {}) {
  const clock = { nowMs: 0 };
  const { log, lines } = captureLog();
  const bodies = new RejectedBodies({ log, nowMs: () => clock.nowMs, ...options });
  return { bodies, clock, lines };
}

test('bodies of an account without rejections do not wait, and count for nothing', async (t) => {
  const { bodies, lines } = create();
  for (let i = 0; i < 100; i++) t.is(await bodies.waitToSend('a', 50 * megabyte, open), 0);
  t.deepEqual(lines, []);
});

const isSlowedDown = (bodies: RejectedBodies, accountId: string): Promise<boolean> =>
  bodies.waitToSend(accountId, megabyte, AbortSignal.abort()).then(
    () => false,
    () => true,
  );

test('an account that had more than 32 MB refused waits, others do not, and 4 MB/s are made up for', async (t) => {
  const { bodies, clock, lines } = create();
  bodies.add('a', 31 * megabyte);
  t.false(await isSlowedDown(bodies, 'a'));
  bodies.add('a', 5 * megabyte);
  t.true(await isSlowedDown(bodies, 'a'));
  t.false(await isSlowedDown(bodies, 'b'));
  clock.nowMs += 999;
  t.true(await isSlowedDown(bodies, 'a'));
  clock.nowMs += 2;
  t.false(await isSlowedDown(bodies, 'a'));
  t.is(lines.filter(({ account_id: id }) => id === 'a').length, 1);
});

test('what waited counts as refused until its request succeeds, so one continues at a time', async (t) => {
  const { log } = captureLog();
  const bodies = new RejectedBodies({ log, maxWaitMs: 100 });
  bodies.add('a', 5_000 * megabyte);
  const [first, second] = [0, 1].map(() => bodies.waitToSend('a', 100 * megabyte, open));
  const rejected = t.throwsAsync(second!, { instanceOf: AppError });
  t.is(await first!, 100 * megabyte);
  const error = await rejected;
  t.is(error?.code, 'rate_limit_exceeded');
  t.is(error?.headers?.['retry-after'], '1');
  // The first succeeds.
  bodies.add('a', -100 * megabyte);
  t.is(await bodies.waitToSend('a', megabyte, open), 0);
});

test('a body whose caller disconnects stops waiting', async (t) => {
  const { bodies } = create();
  bodies.add('a', 60 * megabyte);
  const closed = new AbortController();
  const waiting = bodies.waitToSend('a', megabyte, closed.signal);
  closed.abort(new AppError('job_cancelled'));
  t.is((await t.throwsAsync(waiting, { instanceOf: AppError }))?.code, 'job_cancelled');
});

import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { CaptchaPool } from '../../../../api/account-area/captcha/captcha-pool.ts';
import type { DrawnCaptcha } from '../../../../api/account-area/captcha/draw-captcha.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';

const log = createLogger('test', 'silent');
const site = '192.0.2.1';

/** A `draw` function that finishes only when the test calls `finish`. Each image contains the captcha's number. */
function createManualDrawer() {
  const started: ((error?: Error) => void)[] = [];
  let count = 0;
  const draw = (): Promise<DrawnCaptcha> =>
    new Promise((resolve, reject) => {
      started.push((error) => {
        if (error !== undefined) reject(error);
        else resolve({ image: Buffer.from(String(count++)), promptImage: Buffer.alloc(0), icons: [] });
      });
    });
  const finish = async (error?: Error): Promise<void> => {
    started.shift()!(error);
    await turn();
  };
  return { draw, started, finish };
}

const numberOf = async (captcha: Promise<DrawnCaptcha>): Promise<number> => Number((await captcha).image);

test('nothing is drawn before the first captcha is requested', async (t) => {
  const { draw, started } = createManualDrawer();
  const pool = new CaptchaPool({ draw, log, size: 2 });
  await turn();
  t.is(started.length, 0);
  await pool.close();
});

test('each captcha is handed out once, in request order within a network, and one is drawn at a time', async (t) => {
  const { draw, started, finish } = createManualDrawer();
  const pool = new CaptchaPool({ draw, log, size: 2 });
  const captchas = [pool.take(site), pool.take(site), pool.take(site)];
  for (let i = 0; i < 3; i++) {
    t.is(started.length, 1);
    await finish();
  }
  t.deepEqual(await Promise.all(captchas.map(numberOf)), [0, 1, 2]);
  await finish();
  await finish();
  t.is(started.length, 0, 'two are ready');
  t.deepEqual([await numberOf(pool.take(site)), await numberOf(pool.take(site))], [3, 4]);
  t.is(started.length, 1, 'a replacement is drawn for each one taken');
  const closed = pool.close();
  await finish();
  await closed;
});

test('callers beyond the maximum are rejected, and those already waiting are not affected', async (t) => {
  const { draw, finish } = createManualDrawer();
  const pool = new CaptchaPool({ draw, log, size: 1, maxWaiting: 2 });
  const waiting = [pool.take(site), pool.take(site)];
  await t.throwsAsync(pool.take(site), { code: 'queue_full' });
  await finish();
  await finish();
  t.deepEqual(await Promise.all(waiting.map(numberOf)), [0, 1]);
  const closed = pool.close();
  await finish();
  await closed;
});

test('at most five callers per network wait, and they alternate with callers from other networks', async (t) => {
  const { draw, finish } = createManualDrawer();
  const pool = new CaptchaPool({ draw, log, size: 1 });
  const flood = Array.from({ length: 5 }, () => pool.take('2001:db8:1::/48'));
  await t.throwsAsync(pool.take('2001:db8:1::/48'), { code: 'queue_full' });
  const others = [pool.take('192.0.2.1'), pool.take('192.0.2.2')];
  for (let i = 0; i < 7; i++) await finish();
  t.deepEqual(await Promise.all(others.map(numberOf)), [1, 2]);
  t.deepEqual(await Promise.all(flood.map(numberOf)), [0, 3, 4, 5, 6]);
  const closed = pool.close();
  await finish();
  await closed;
});

test('when the queue is full, a caller from a network with no waiting caller evicts the newest one of the network with the most waiting callers', async (t) => {
  const { draw, finish } = createManualDrawer();
  const pool = new CaptchaPool({ draw, log, size: 1, maxWaiting: 4 });
  const [first, second, third] = [pool.take('192.0.2.2'), pool.take(site), pool.take(site)];
  const newest = t.throwsAsync(pool.take(site), { code: 'queue_full' });
  await t.throwsAsync(
    pool.take('192.0.2.2'),
    { code: 'queue_full' },
    'a network with a waiting caller evicts no caller',
  );
  const others = [pool.take('192.0.2.3')];
  await newest;
  const evicted = t.throwsAsync(third, { code: 'queue_full' });
  others.push(pool.take('192.0.2.4'));
  await evicted;
  await t.throwsAsync(pool.take('192.0.2.5'), { code: 'queue_full' }, 'every network has one waiting caller');
  for (let i = 0; i < 4; i++) await finish();
  t.deepEqual(await Promise.all([first, second, ...others].map(numberOf)), [0, 1, 2, 3]);
  const closed = pool.close();
  await finish();
  await closed;
});

test('a caller that disconnects frees its queue slot', async (t) => {
  const { draw, finish } = createManualDrawer();
  const pool = new CaptchaPool({ draw, log, size: 1, maxWaiting: 2 });
  const [caller, disconnected] = [new AbortController(), new Error('gone')];
  const cancelled = t.throwsAsync(pool.take(site, caller.signal), { is: disconnected });
  const waiting = pool.take(site);
  caller.abort(disconnected);
  await cancelled;
  await t.throwsAsync(pool.take(site, caller.signal), { is: disconnected });
  const next = pool.take('192.0.2.2');
  await finish();
  await finish();
  t.deepEqual(await Promise.all([waiting, next].map(numberOf)), [0, 1]);
  const closed = pool.close();
  await finish();
  await closed;
});

test('a drawing failure fails all waiting callers, and the next caller triggers a new drawing', async (t) => {
  const { draw, started, finish } = createManualDrawer();
  const pool = new CaptchaPool({ draw, log, size: 1 });
  const waiting = [pool.take(site), pool.take(site)].map((captcha) =>
    t.throwsAsync(captcha, { message: 'no paint' }),
  );
  await finish(new Error('no paint'));
  await Promise.all(waiting);
  t.is(started.length, 0);
  const next = pool.take(site);
  await finish();
  t.is(await numberOf(next), 0);
  const closed = pool.close();
  await finish();
  await closed;
});

test('closing rejects callers, and resolves once no drawing is running', async (t) => {
  const { draw, started, finish } = createManualDrawer();
  const pool = new CaptchaPool({ draw, log });
  const waiting = t.throwsAsync(pool.take(site), { code: 'service_unavailable' });
  let isClosed = false;
  const closed = pool.close().then(() => {
    isClosed = true;
  });
  await waiting;
  await turn();
  t.false(isClosed);
  await finish();
  await closed;
  t.is(started.length, 0);
  await t.throwsAsync(pool.take(site), { code: 'service_unavailable' });
});

import test from 'ava';
import { UnpaidTime } from '../../../../api/http/callers/unpaid-time.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { captureLog } from '../../../support/captured-log.ts';
import { waitFor } from '../../../support/wait-for.ts';

function createTime(maxWaitMs?: number) {
  const clock = { ms: 1_000 };
  const { log, lines } = captureLog();
  const time = new UnpaidTime({ log, nowMs: () => clock.ms, ...(maxWaitMs !== undefined && { maxWaitMs }) });
  /** The calls that have been let through, in order. */
  const order: string[] = [];
  const request = async (
    network: string,
    { operation = 'any', signal = new AbortController().signal } = {},
  ): Promise<void> => {
    await time.acquire({ network, operation, signal });
    order.push(`${network} ${operation}`);
  };
  return { clock, time, lines, order, request };
}

test('a network that stays within its share never waits, however many calls it sends', async (t) => {
  const { clock, time, request } = createTime();
  for (let i = 0; i < 1_000; i++) {
    clock.ms += 100;
    time.add('a', 25);
    t.false(time.isStrained);
    await request('a');
  }
});

test('a network that used a second of time waits until a quarter of the time since then makes up for it', async (t) => {
  const { clock, time, request, order, lines } = createTime();
  time.add('a', 1_000);
  t.true(time.isStrained);
  const waiting = request('a');
  clock.ms += 2_900;
  // Other networks do not wait for it. By now, they all together have not used up their share either.
  await request('b');
  t.deepEqual(order, ['b any']);
  t.is(time.waiting, 1);
  clock.ms += 200;
  await waiting;
  t.false(time.isStrained);
  t.like(lines[0], { msg: 'unpaid calls wait for their share of time', network: 'a' });
});

test('together, all networks use no more than half of the time, and take turns in it', async (t) => {
  const { clock, time, request, order } = createTime();
  for (let i = 0; i < 20; i++) time.add(`network ${i}`, 100);
  const calls = ['a', 'a', 'a', 'b', 'c'].map((network) => request(network));
  t.is(time.waiting, 5);
  clock.ms += 2_900;
  await new Promise(setImmediate);
  t.deepEqual(order, []);
  clock.ms += 200;
  await Promise.all(calls);
  t.deepEqual(order.slice(0, 3).toSorted(), ['a any', 'b any', 'c any']);
});

test('the next call is let through only when the time of the previous one is known', async (t) => {
  const { clock, time, request } = createTime();
  time.add('a', 1_000);
  let done = 0;
  const calls = Array.from({ length: 4 }, async () => {
    await request('a');
    done += 1;
    time.add('a', 300);
  });
  clock.ms += 3_200;
  await waitFor('the first call', () => done === 1);
  for (let expected = 2; expected <= 4; expected++) {
    for (let i = 0; i < 5; i++) await new Promise(setImmediate);
    t.is(done, expected - 1);
    clock.ms += 1_300;
    await waitFor('the next call', () => done === expected);
  }
  await Promise.all(calls);
});

test('operations of a network take turns, so that one call does not wait behind a flood of others', async (t) => {
  const { clock, time, request, order } = createTime();
  time.add('a', 1_000);
  const flood = Array.from({ length: 20 }, () => request('a', { operation: 'flood' }));
  const health = request('a', { operation: 'health' });
  clock.ms += 8_000;
  await Promise.all([...flood, health]);
  t.is(order.indexOf('a health'), 1);
});

test('a call that waits too long is rejected with the time after which to try again', async (t) => {
  const { time, request } = createTime(20);
  time.add('a', 2_250);
  const error = await t.throwsAsync(request('a'), { instanceOf: AppError });
  t.like(error, { code: 'rate_limit_exceeded', headers: { 'retry-after': '8' } });
  t.is(time.waiting, 0);
});

test('a call whose client disconnects no longer waits', async (t) => {
  const { time, request } = createTime();
  time.add('a', 2_250);
  const client = new AbortController();
  const call = request('a', { signal: client.signal });
  t.is(time.waiting, 1);
  client.abort(new Error('gone'));
  await t.throwsAsync(call, { message: 'gone' });
  t.is(time.waiting, 0);
});

test('a single piece of work of minutes locks a network out for no longer than one of three seconds', (t) => {
  const { clock, time } = createTime();
  time.add('a', 600_000);
  clock.ms += 11_000;
  t.false(time.isStrained);
});

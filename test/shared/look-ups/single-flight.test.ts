import test from 'ava';
import { SingleFlight } from '../../../shared/look-ups/single-flight.ts';

test('callers who need the same share one look-up; the next starts another', async (t) => {
  const flight = new SingleFlight<number>('a test');
  let calls = 0;
  const start = async (): Promise<number> => {
    await new Promise((resolve) => setImmediate(resolve));
    calls += 1;
    return calls;
  };
  t.deepEqual(
    await Promise.all([flight.run('a', start), flight.run('a', start), flight.run('b', start)]),
    [1, 1, 2],
  );
  t.is(await flight.run('a', start), 3);
});

test('a look-up that fails does so for all who share it, and is not kept', async (t) => {
  const flight = new SingleFlight<string>('a test');
  const fail = () => Promise.reject(new Error('broken'));
  const both = await Promise.allSettled([flight.run('a', fail), flight.run('a', fail)]);
  t.true(both.every(({ status }) => status === 'rejected'));
  t.is(await flight.run('a', async () => 'whole'), 'whole');
});

test('a look-up that never ends is a 503 in time, and the next is made anew', async (t) => {
  const flight = new SingleFlight<string>('a test', 1);
  await t.throwsAsync(
    flight.run('a', () => new Promise(() => undefined)),
    { message: /a test took longer/ },
  );
  t.is(await flight.run('a', async () => 'whole'), 'whole');
});

test('callers who need what is there now share the look-up after the one under way', async (t) => {
  const flight = new SingleFlight<string>('a test');
  let current = 'old';
  const read: (() => void)[] = [];
  const look = async (): Promise<string> => {
    const found = current;
    await new Promise<void>((resolve) => read.push(resolve));
    return found;
  };
  const first = flight.runNext('a', look);
  await Promise.resolve();
  current = 'new';
  const later = [1, 2, 3].map(() => flight.runNext('a', look));
  t.is(read.length, 1);
  read[0]!();
  t.is(await first, 'old');
  while (read.length < 2) await new Promise((resolve) => setImmediate(resolve));
  read[1]!();
  t.deepEqual(await Promise.all(later), ['new', 'new', 'new']);
  t.is(read.length, 2);
});

import test from 'ava';
import { SingleFlight } from '../../../../shared/platform/storage/single-flight.ts';

test('callers with the same key share one look-up; a later caller starts another', async (t) => {
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

test('a failed look-up fails for all callers that share it, and is not cached', async (t) => {
  const flight = new SingleFlight<string>('a test');
  const fail = () => Promise.reject(new Error('broken'));
  const both = await Promise.allSettled([flight.run('a', fail), flight.run('a', fail)]);
  t.true(both.every(({ status }) => status === 'rejected'));
  t.is(await flight.run('a', async () => 'whole'), 'whole');
});

test('a look-up that never finishes fails with a 503 in time, and the next call starts a new one', async (t) => {
  const flight = new SingleFlight<string>('a test', 1);
  await t.throwsAsync(
    flight.run('a', () => new Promise(() => undefined)),
    { message: /a test took longer/ },
  );
  t.is(await flight.run('a', async () => 'whole'), 'whole');
});

test('callers that need the current value do not join the look-up in flight, but share the next one', async (t) => {
  const flight = new SingleFlight<string>('a test');
  let current = 'old';
  const finishLookUps: (() => void)[] = [];
  const lookUp = async (): Promise<string> => {
    const found = current;
    await new Promise<void>((resolve) => finishLookUps.push(resolve));
    return found;
  };
  const first = flight.runNext('a', lookUp);
  await Promise.resolve();
  current = 'new';
  const later = [1, 2, 3].map(() => flight.runNext('a', lookUp));
  t.is(finishLookUps.length, 1);
  finishLookUps[0]!();
  t.is(await first, 'old');
  while (finishLookUps.length < 2) await new Promise((resolve) => setImmediate(resolve));
  finishLookUps[1]!();
  t.deepEqual(await Promise.all(later), ['new', 'new', 'new']);
  t.is(finishLookUps.length, 2);
});

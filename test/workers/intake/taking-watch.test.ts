import test from 'ava';
import { TakingWatch } from '../../../workers/intake/taking-watch.ts';

test('a worker counts as taking work unless an attempt hangs or attempts fail for longer than a reconnect takes', async (t) => {
  let nowMs = 0;
  const watch = new TakingWatch(() => nowMs);
  t.true(watch.isTaking('chat'));
  let answer = (): void => undefined;
  const hanging = watch.observe('chat', () => new Promise<void>((resolve) => (answer = resolve)));
  nowMs += 20_000;
  t.true(watch.isTaking('chat'));
  nowMs += 1;
  t.false(watch.isTaking('chat'));
  t.true(watch.isTaking('image'));
  answer();
  await hanging;
  t.true(watch.isTaking('chat'));

  const fail = (): Promise<never> => Promise.reject(new Error('simulated'));
  await t.throwsAsync(watch.observe('chat', fail));
  nowMs += 20_001;
  await t.throwsAsync(watch.observe('chat', fail));
  t.false(watch.isTaking('chat'));
  await watch.observe('chat', () => Promise.resolve());
  t.true(watch.isTaking('chat'));
  // While all its slots are in use, it does not try.
  nowMs += 60_000;
  t.true(watch.isTaking('chat'));
});

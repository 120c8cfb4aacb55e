import test from 'ava';
import { mapBounded } from '../../../../shared/platform/runtime/map-bounded.ts';

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('concurrency stays within the limit, and the results are in the order of the items', async (t) => {
  for (const count of [0, 1, 3, 10]) {
    let running = 0;
    let maxRunning = 0;
    const items = Array.from({ length: count }, (_, i) => i);
    const results = await mapBounded(items, 3, async (item) => {
      running += 1;
      maxRunning = Math.max(maxRunning, running);
      // Later items finish first.
      for (let i = item; i < count; i++) await settle();
      running -= 1;
      return item * 2;
    });
    t.deepEqual(
      results,
      items.map((item) => item * 2),
    );
    t.is(maxRunning, Math.min(3, count));
  }
});

test('after a failure no more items are started', async (t) => {
  const started: number[] = [];
  const failing = mapBounded([1, 2, 3, 4, 5], 2, async (item) => {
    started.push(item);
    await settle();
    if (item === 2) throw new Error('broken');
  });
  await t.throwsAsync(failing, { message: 'broken' });
  await settle();
  t.true(started.length <= 3, String(started));
});

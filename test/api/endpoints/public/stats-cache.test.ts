import test from 'ava';
import { StatsCache } from '../../../../api/endpoints/public/stats-cache.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';

/** A cache whose clock and source are controlled by the test. */
function makeCache() {
  const source = { nowMs: 1_000, reads: 0, fails: false };
  const cache = new StatsCache({
    read: async () => {
      source.reads += 1;
      await Promise.resolve();
      if (source.fails) throw new Error('away');
      return { value: source.reads, validForMs: 30_000 };
    },
    log: createLogger('test', 'silent'),
    nowMs: () => source.nowMs,
  });
  return { source, cache };
}

test('concurrent callers share one read, and later ones are served from memory', async (t) => {
  const { source, cache } = makeCache();
  const together = await Promise.all([cache.get(), cache.get(), cache.get()]);
  t.deepEqual(
    together,
    Array.from({ length: 3 }, () => ({ value: 1, validForMs: 30_000 })),
  );
  source.nowMs += 29_999;
  t.deepEqual(await cache.get(), { value: 1, validForMs: 1 });
  t.is(source.reads, 1);
  source.nowMs += 1;
  t.is((await cache.get()).value, 2);
});

test('a failed read keeps the last known stats, and is retried soon', async (t) => {
  const { source, cache } = makeCache();
  await cache.get();
  source.fails = true;
  source.nowMs += 30_000;
  t.deepEqual(await cache.get(), { value: 1, validForMs: 2_000 });
  source.nowMs += 1_999;
  await cache.get();
  t.is(source.reads, 2);
  source.fails = false;
  source.nowMs += 1;
  t.deepEqual(await cache.get(), { value: 3, validForMs: 30_000 });
});

test('if there are no stats yet, a failed read is thrown, and the next caller reads again', async (t) => {
  const { source, cache } = makeCache();
  source.fails = true;
  await t.throwsAsync(cache.get(), { message: 'away' });
  source.fails = false;
  t.is((await cache.get()).value, 2);
});

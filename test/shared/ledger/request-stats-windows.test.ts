import test from 'ava';
import {
  findBuckets,
  findStep,
  modelWindow,
  totalWindow,
} from '../../../shared/ledger/request-stats-windows.ts';

const minuteMs = 60_000;

for (const [what, window, periodMs] of [
  ['models', modelWindow, 30 * minuteMs],
  ['totals', totalWindow, 24 * 60 * minuteMs],
] as const) {
  const bucketMs = window.bucketSeconds * 1_000;

  test(`${what}: the window always covers the whole period, and exceeds it by less than one bucket`, (t) => {
    for (const nowMs of [0, 1, bucketMs / 2, bucketMs - 1].map((ms) => 10_000 * bucketMs + ms)) {
      const buckets = findBuckets(window, nowMs);
      t.is(buckets[0], 10_000);
      t.deepEqual(
        buckets,
        buckets.map((_, i) => 10_000 - i),
      );
      const coveredMs = nowMs - buckets.at(-1)! * bucketMs;
      t.true(coveredMs >= periodMs && coveredMs < periodMs + bucketMs);
    }
  });

  test(`${what}: a bucket expires only when no window includes it any longer`, (t) => {
    t.true(window.retentionSeconds >= (window.previousBuckets + 1) * window.bucketSeconds);
  });
}

test('a step starts at a multiple of the step length and ends when the next one starts', (t) => {
  t.deepEqual(findStep(30_000, 90_000), { startMs: 90_000, leftMs: 30_000 });
  t.deepEqual(findStep(30_000, 119_999), { startMs: 90_000, leftMs: 1 });
});

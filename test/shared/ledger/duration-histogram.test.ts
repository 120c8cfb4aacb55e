import test from 'ava';
import {
  addHistogram,
  addToClass,
  classifyDuration,
  durationClasses,
  findQuantile,
  type DurationHistogram,
} from '../../../shared/ledger/duration-histogram.ts';

function sum(durations: readonly number[]): DurationHistogram {
  const histogram: number[] = [];
  for (const ms of durations) addToClass(histogram, classifyDuration(ms), 1);
  return histogram;
}

test('quantiles of many durations are exact to about a tenth', (t) => {
  const durations = Array.from({ length: 10_000 }, (_, i) => 100 + ((i * 7_919) % 10_000));
  const histogram = sum(durations);
  const sorted = durations.toSorted((a, b) => a - b);
  for (const share of [0.1, 0.5, 0.95, 0.99]) {
    const exact = sorted[Math.ceil(share * sorted.length) - 1]!;
    const estimate = findQuantile(histogram, share)!;
    t.true(Math.abs(estimate / exact - 1) < 0.1, `${share}: ${estimate} instead of ${exact}`);
  }
});

test('no duration has no quantile, and extreme ones are in the first and the last class', (t) => {
  t.is(findQuantile([], 0.5), null);
  t.is(sum([-5]).length, 1);
  t.is(sum([1e12]).length, durationClasses);
  t.true(findQuantile(sum([0]), 0.5)! <= 50);
});

test('histograms are added class by class, whichever is longer', (t) => {
  const [short, long] = [sum([10, 60]), sum([10, 10_000])];
  for (const [one, other] of [
    [short, long],
    [long, short],
  ] as const) {
    const total = [...one];
    addHistogram(total, other);
    t.deepEqual(total, sum([10, 60, 10, 10_000]));
  }
});

import test from 'ava';
import { sumUp, type MemorySample } from '../../../../../scripts/bench/suites/memory/memory.ts';

function sample(mbAt: (progress: number) => number): MemorySample[] {
  return Array.from({ length: 100 }, (_, i) => ({
    progress: (i + 1) / 100,
    mb: { api: mbAt((i + 1) / 100) },
  }));
}

test('memory that jumps up and down around a constant level is flat', (t) => {
  const { atMarksMb, isFlat, peakMb } = sumUp(
    'api',
    sample((progress) => 200 + (Math.round(progress * 100) % 2) * 40),
  );
  t.deepEqual(atMarksMb, [220, 220, 220]);
  t.is(peakMb, 240);
  t.true(isFlat);
});

test('memory is flat if it grows at first and then stops growing', (t) => {
  t.true(
    sumUp(
      'api',
      sample((progress) => Math.min(300, 100 + progress * 1_000)),
    ).isFlat,
  );
});

test('memory is not flat if it grows until the end', (t) => {
  t.false(
    sumUp(
      'api',
      sample((progress) => 100 + progress * 200),
    ).isFlat,
  );
});

test('if a run is too short for a sample in each tenth, the available samples are used', (t) => {
  const { atMarksMb } = sumUp('api', [
    { progress: 0, mb: { api: 100 } },
    { progress: 0.7, mb: { api: 150 } },
  ]);
  t.deepEqual(atMarksMb, [100, 100, 150]);
});

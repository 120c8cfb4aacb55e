import test from 'ava';
import { sumUp, type MemorySample } from '../../../scripts/bench/memory.ts';

function sample(mbAt: (share: number) => number): MemorySample[] {
  return Array.from({ length: 100 }, (_, i) => ({ share: (i + 1) / 100, mb: { api: mbAt((i + 1) / 100) } }));
}

test('memory is flat if it jumps, but returns to the level that it had in the middle', (t) => {
  const { atMarksMb, isFlat, peakMb } = sumUp(
    'api',
    sample((share) => 200 + (Math.round(share * 100) % 2) * 40),
  );
  t.deepEqual(atMarksMb, [220, 220, 220]);
  t.is(peakMb, 240);
  t.true(isFlat);
});

test('memory is flat if it grows at first and then stops growing', (t) => {
  t.true(
    sumUp(
      'api',
      sample((share) => Math.min(300, 100 + share * 1_000)),
    ).isFlat,
  );
});

test('memory is not flat if it grows until the end', (t) => {
  t.false(
    sumUp(
      'api',
      sample((share) => 100 + share * 200),
    ).isFlat,
  );
});

test('if a run is too short for a sample in each tenth, the available samples are used', (t) => {
  const { atMarksMb } = sumUp('api', [
    { share: 0, mb: { api: 100 } },
    { share: 0.7, mb: { api: 150 } },
  ]);
  t.deepEqual(atMarksMb, [100, 100, 150]);
});

import test from 'ava';
import { sumUp, type MemorySample } from '../../../scripts/bench/memory.ts';

function sample(mbAt: (share: number) => number): MemorySample[] {
  return Array.from({ length: 100 }, (_, i) => ({ share: (i + 1) / 100, mb: { api: mbAt((i + 1) / 100) } }));
}

test('memory that jumps but returns to the level it had in the middle is flat', (t) => {
  const { atMarksMb, isFlat, peakMb } = sumUp(
    'api',
    sample((share) => 200 + (Math.round(share * 100) % 2) * 40),
  );
  t.deepEqual(atMarksMb, [220, 220, 220]);
  t.is(peakMb, 240);
  t.true(isFlat);
});

test('memory that fills up at first and then stops growing is flat', (t) => {
  t.true(
    sumUp(
      'api',
      sample((share) => Math.min(300, 100 + share * 1_000)),
    ).isFlat,
  );
});

test('memory that grows until the end is not flat', (t) => {
  t.false(
    sumUp(
      'api',
      sample((share) => 100 + share * 200),
    ).isFlat,
  );
});

test('a run too short for a sample in each tenth is evaluated from the available samples', (t) => {
  const { atMarksMb } = sumUp('api', [
    { share: 0, mb: { api: 100 } },
    { share: 0.7, mb: { api: 150 } },
  ]);
  t.deepEqual(atMarksMb, [100, 100, 150]);
});

import test from 'ava';
import { RecentUse } from '../../../shared/fairness/recent-use.ts';

test("a holder's recorded use decays at the given rate, never exceeds the cap, and idle holders are dropped", (t) => {
  let nowMs = 0;
  const used = new RecentUse({ decayRate: 1 / 12, maxUseMs: 60_000, nowMs: () => nowMs });
  used.add('a', 4_000);
  used.add('a', 2_000);
  t.is(used.of('a'), 6_000);
  t.is(used.of('b'), 0);
  nowMs += 60_000;
  t.is(Math.round(used.of('a')), 1_000);
  used.add('b', 1e9);
  t.is(used.of('b'), 60_000);
  nowMs += 12 * 60_000;
  t.is(used.of('b'), 0);
  used.add('c', 1);
  t.is(used.size, 1);
});

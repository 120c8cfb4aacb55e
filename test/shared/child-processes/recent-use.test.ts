import test from 'ava';
import { RecentUse } from '../../../shared/child-processes/recent-use.ts';

test("an account's recorded use decays by 5 s per minute, and idle accounts are dropped", (t) => {
  let nowMs = 0;
  const used = new RecentUse(() => nowMs);
  used.add('a', 4_000);
  used.add('a', 2_000);
  t.is(used.of('a'), 6_000);
  t.is(used.of('b'), 0);
  nowMs += 60_000;
  t.is(Math.round(used.of('a')), 1_000);
  used.add('b', 1e9);
  nowMs += 12 * 60_000;
  t.is(used.of('b'), 0);
  used.add('c', 1);
  t.is(used.size, 1);
});

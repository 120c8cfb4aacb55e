import test from 'ava';
import { computePauseMs } from '../../../workers/webhooks/waiting-deliveries.ts';

test('however many deliveries of an account wait, at most one per second is retried unless it is woken', (t) => {
  for (const leastMs of [10_000, 60_000]) {
    t.is(computePauseMs(1, leastMs), leastMs);
    for (const waiting of [100, 10_000]) t.true(waiting / computePauseMs(waiting, leastMs) <= 1 / 1_000);
  }
});

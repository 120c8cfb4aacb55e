import test from 'ava';
import { computePauseMs } from '../../../workers/webhooks/waiting-deliveries.ts';

test('however many deliveries of an account wait, at most one per second returns unless it is released early', (t) => {
  for (const minMs of [10_000, 60_000]) {
    t.is(computePauseMs(1, minMs), minMs);
    for (const waiting of [100, 10_000]) t.true(waiting / computePauseMs(waiting, minMs) <= 1 / 1_000);
  }
});

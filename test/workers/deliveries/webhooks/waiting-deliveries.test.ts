import test from 'ava';
import { computePauseMs } from '../../../../workers/deliveries/webhooks/waiting-deliveries.ts';

test('for any number of waiting deliveries of an account, at most one per second is retried, unless released early', (t) => {
  for (const minMs of [10_000, 60_000]) {
    t.is(computePauseMs(1, minMs), minMs);
    for (const waiting of [100, 10_000]) t.true(waiting / computePauseMs(waiting, minMs) <= 1 / 1_000);
  }
});

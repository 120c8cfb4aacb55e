import test from 'ava';
import { webhookAttempts } from '../../../../workers/deliveries/webhooks/webhook-queue.ts';
import { computeRetryDelayMs } from '../../../../workers/deliveries/webhooks/conclude-attempt.ts';

const attempts = Array.from({ length: webhookAttempts - 1 }, (_, i) => i + 1);

test('retry delays are 5 s, 5 min, 30 min, 2 h, 5 h and 10 h, and up to a fifth longer', (t) => {
  const seconds = [5, 300, 1_800, 7_200, 18_000, 36_000];
  t.deepEqual(
    attempts.map((count) => computeRetryDelayMs(count, null, () => 0)),
    seconds.map((pause) => pause * 1_000),
  );
  t.deepEqual(
    attempts.map((count) => computeRetryDelayMs(count, null, () => 1)),
    seconds.map((pause) => pause * 1_200),
  );
});

test('a receiver may request a longer delay, up to an hour; a shorter one changes nothing', (t) => {
  const delay = (count: number, retryAfterMs: number) => computeRetryDelayMs(count, retryAfterMs, () => 0);
  t.is(delay(1, 60_000), 60_000);
  t.is(delay(1, 86_400_000), 3_600_000);
  t.is(delay(2, 1_000), 300_000);
});

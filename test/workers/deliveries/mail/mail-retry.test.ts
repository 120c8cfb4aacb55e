import test from 'ava';
import { computeMailRetryMs } from '../../../../workers/deliveries/mail/mail-retry.ts';

test('retry delays double, up to a minute for a code and a quarter of an hour for a notice', (t) => {
  const pauses = (kind: 'sign-in-code' | 'notice'): number[] =>
    [1, 2, 3, 4, 5, 6, 9, 5_000].map((attempts) => computeMailRetryMs(attempts, kind, () => 0) / 1_000);
  t.deepEqual(pauses('sign-in-code'), [5, 10, 20, 40, 60, 60, 60, 60]);
  t.deepEqual(pauses('notice'), [5, 10, 20, 40, 80, 160, 900, 900]);
});

test('mails that failed together are retried at different times', (t) => {
  t.is(
    computeMailRetryMs(1, 'notice', () => 1),
    6_000,
  );
});

import test from 'ava';
import { AppError } from '../../../shared/contract/errors.ts';
import type { CallSlot } from '../../../workers/routing/acquire-script.ts';
import { acquireExtraSlot } from '../../../workers/routing/extra-slot.ts';
import { RequestFailures } from '../../../workers/routing/request-failures.ts';
import type { RouteLimiter } from '../../../workers/routing/route-limiter.ts';

const acquire = (reason: Error): ReturnType<typeof acquireExtraSlot> => {
  const limiter = { acquire: async () => Promise.reject(reason) } as unknown as RouteLimiter;
  const waitLimits = { keyMs: 1_000, breakerMs: 1_000 };
  const slot = { candidate: {}, accountId: 'ann' } as unknown as CallSlot;
  return acquireExtraSlot(
    { limiter, failures: new RequestFailures(limiter) },
    { waitLimits, deadlineAtMs: Infinity },
    slot,
    new AbortController().signal,
  );
};

test('a call continues with its current slot if no further slot is available or Redis is down', async (t) => {
  t.is(await acquire(new AppError('service_unavailable')), null);
  t.is(await acquire(new AppError('deadline_exceeded')), null);
});

test('an internal error is not mistaken for a lack of slots', async (t) => {
  await t.throwsAsync(acquire(new TypeError('oops')), { instanceOf: TypeError });
});

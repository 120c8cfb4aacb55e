import test from 'ava';
import { UpstreamError, type UpstreamFailure } from '../../../workers/upstreams/upstream.ts';
import {
  chooseBackoffMs,
  findCooldown,
  classifyFailure,
  maxAttempts,
  mayRetry,
} from '../../../workers/routing/retry-policy.ts';

const failed = (
  failure: UpstreamFailure,
  details: ConstructorParameters<typeof UpstreamError>[2] = {},
): UpstreamError => new UpstreamError(failure, 'it failed', details);
const fresh = {
  calls: 1,
  attempts: 1,
  elapsedMs: 10,
  budgetMs: 1_000,
  hasOutput: false,
  hasOtherRoute: true,
  isSplit: false,
  statusLeftMs: Infinity,
  retriesTimeouts: true,
};

test('a failure that may not recur is retried: at most three attempts, within the timeout of one call, before any output', (t) => {
  for (const failure of ['unavailable', 'timeout', 'rate_limited', 'auth'] as const) {
    const error = failed(failure);
    t.true(mayRetry(error, fresh));
    t.true(mayRetry(error, { ...fresh, attempts: maxAttempts - 1 }));
    t.false(mayRetry(error, { ...fresh, attempts: maxAttempts }));
    t.false(mayRetry(error, { ...fresh, elapsedMs: 1_000 }));
    t.false(mayRetry(error, { ...fresh, hasOutput: true }));
    t.false(
      mayRetry(error, { ...fresh, calls: 8 }),
      'not retried after eight calls, even if untried keys remain',
    );
  }
  t.false(mayRetry(failed('rejected'), fresh));
});

test('a call too expensive to repeat is retried only if the vendor is not still running it', (t) => {
  const expensive = { ...fresh, retriesTimeouts: false };
  const stillRunning = failed('timeout', { mayStillRun: true });
  t.false(mayRetry(stillRunning, expensive));
  t.true(mayRetry(stillRunning, fresh));
  t.true(mayRetry(failed('timeout'), expensive), 'the vendor was not called');
  t.true(mayRetry(failed('timeout', { status: 504 }), expensive), 'the vendor itself timed out');
  t.true(mayRetry(failed('unavailable', { status: 503 }), expensive));
  t.is(classifyFailure(stillRunning), 'bad', 'recorded as a vendor failure, because the vendor may hang');
});

test('a model unknown to the vendor is tried on another route, not with another key', (t) => {
  t.true(mayRetry(failed('missing'), fresh));
  t.false(mayRetry(failed('missing'), { ...fresh, hasOtherRoute: false }));
  t.is(classifyFailure(failed('missing')), 'none');
});

test('a request too large for one key is tried with every other key, once each', (t) => {
  const error = failed('too_large', { status: 429 });
  t.true(mayRetry(error, fresh));
  t.false(mayRetry(error, { ...fresh, hasOtherRoute: false }));
  t.is(chooseBackoffMs(error, 1, 0.9), 0);
  t.is(classifyFailure(error), 'none');
});

test('the wait before a retry is random between zero and 100 ms, then 200 ms, and at most 2 s', (t) => {
  const error = failed('unavailable');
  for (const random of [0, 0.25, 0.999]) {
    t.is(chooseBackoffMs(error, 1, random), random * 100);
    t.is(chooseBackoffMs(error, 2, random), random * 200);
    t.is(chooseBackoffMs(error, 30, random), random * 2_000);
  }
});

test('after a rate-limited or rejected key the next key is tried immediately', (t) => {
  t.is(chooseBackoffMs(failed('auth'), 0, 0.9), 0);
  t.is(chooseBackoffMs(failed('rate_limited'), 1, 0.9), 0);
});

test('only failures of the vendor are recorded for a route', (t) => {
  t.is(classifyFailure(failed('unavailable')), 'bad');
  t.is(classifyFailure(failed('timeout')), 'bad');
  t.is(classifyFailure(failed('rejected', { status: 400 })), 'ok');
  t.is(classifyFailure(failed('rejected')), 'none', 'the vendor was not called');
  for (const failure of ['unavailable', 'timeout'] as const)
    t.is(classifyFailure(failed(failure, { isRequestFailure: true })), 'none');
  t.is(classifyFailure(failed('rate_limited')), 'limited');
  t.is(classifyFailure(failed('auth')), 'none');
});

test('a key is on cooldown for as long as its vendor specifies, and only on one route if only that is affected', (t) => {
  t.like(findCooldown(failed('rate_limited', { status: 429, retryAfterMs: 7_500 })), {
    scope: 'keyOnRoute',
    forMs: 7_500,
  });
  t.is(findCooldown(failed('rate_limited', { status: 429 }))?.forMs, 1_000);
  t.is(findCooldown(failed('rate_limited', { status: 429, retryAfterMs: 1e12 }))?.forMs, 3_600_000);
  t.is(findCooldown(failed('auth', { status: 401 }))?.scope, 'key');
  t.is(findCooldown(failed('auth', { status: 429 }))?.scope, 'key');
  // These statuses may be caused by the request itself.
  for (const status of [402, 403]) {
    const cooldown = findCooldown(failed('auth', { status }));
    t.like(cooldown, { scope: 'keyOnRoute', forMs: 600_000, forAccountMs: 20_000 });
  }
  for (const failure of ['rejected', 'missing', 'too_large', 'unavailable', 'timeout'] as const)
    t.is(findCooldown(failed(failure)), null);
});

test('a call that is split after a failure is not repeated, except through another route', (t) => {
  const split = { ...fresh, isSplit: true };
  t.false(mayRetry(failed('unavailable', { status: 500 }), { ...split, hasOtherRoute: false }));
  t.true(mayRetry(failed('unavailable', { status: 500 }), split));
});

test('a rate limit is not waited for beyond the time in which the caller can get a status, unless the vendor said for the first time how long', (t) => {
  const last = { ...fresh, hasOtherRoute: false, statusLeftMs: 1_500 };
  const limited = (retryAfterMs: number | null) => failed('rate_limited', { status: 429, retryAfterMs });
  t.true(mayRetry(limited(null), last), 'a second is short enough');
  t.false(mayRetry(limited(null), { ...last, statusLeftMs: 500 }));
  t.true(mayRetry(limited(5_000), last), 'the vendor said so');
  t.false(mayRetry(limited(5_000), { ...last, attempts: 2 }), 'and says so again');
  t.true(mayRetry(limited(5_000), { ...last, attempts: 2, statusLeftMs: -1 }), 'the status was sent');
  t.true(mayRetry(limited(5_000), { ...last, attempts: 2, hasOtherRoute: true }));
});

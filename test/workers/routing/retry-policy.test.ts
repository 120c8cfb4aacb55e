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
  retriesTimeouts: true,
};

test('errors that another route may not have are retried: three times, within the time of one call, before any output', (t) => {
  for (const failure of ['unavailable', 'timeout', 'rate_limited', 'auth'] as const) {
    const error = failed(failure);
    t.true(mayRetry(error, fresh));
    t.true(mayRetry(error, { ...fresh, attempts: maxAttempts - 1 }));
    t.false(mayRetry(error, { ...fresh, attempts: maxAttempts }));
    t.false(mayRetry(error, { ...fresh, elapsedMs: 1_000 }));
    t.false(mayRetry(error, { ...fresh, hasOutput: true }));
    t.false(mayRetry(error, { ...fresh, calls: 8 }), 'not even across any number of keys');
  }
  t.false(mayRetry(failed('rejected'), fresh));
});

test('a call too expensive to be made twice is not retried while a vendor may still be working on it, and otherwise is', (t) => {
  const dear = { ...fresh, retriesTimeouts: false };
  const leftAtIt = failed('timeout', { mayStillRun: true });
  t.false(mayRetry(leftAtIt, dear));
  t.true(mayRetry(leftAtIt, fresh));
  t.true(mayRetry(failed('timeout'), dear), 'the vendor was not called');
  t.true(mayRetry(failed('timeout', { status: 504 }), dear), 'the vendor gave up itself');
  t.true(mayRetry(failed('unavailable', { status: 503 }), dear));
  t.is(classifyFailure(leftAtIt), 'bad', 'it may still be running');
});

test('an unsupported request is tried on another route, but not with another key', (t) => {
  t.true(mayRetry(failed('missing'), fresh));
  t.false(mayRetry(failed('missing'), { ...fresh, hasOtherRoute: false }));
  t.is(classifyFailure(failed('missing')), 'none');
});

test('a request too large for one key is tried once with every other key', (t) => {
  const error = failed('too_large', { status: 429 });
  t.true(mayRetry(error, fresh));
  t.false(mayRetry(error, { ...fresh, hasOtherRoute: false }));
  t.is(chooseBackoffMs(error, 1, 0.9), 0);
  t.is(classifyFailure(error), 'none');
});

test('the delay before a retry has full jitter below 100 ms, then 200 ms, and 2 s at most', (t) => {
  const error = failed('unavailable');
  for (const random of [0, 0.25, 0.999]) {
    t.is(chooseBackoffMs(error, 1, random), random * 100);
    t.is(chooseBackoffMs(error, 2, random), random * 200);
    t.is(chooseBackoffMs(error, 30, random), random * 2_000);
  }
});

test('after a rate-limited or invalid key the next one is tried immediately', (t) => {
  t.is(chooseBackoffMs(failed('auth'), 0, 0.9), 0);
  t.is(chooseBackoffMs(failed('rate_limited'), 1, 0.9), 0);
});

test('only server failures count against a route', (t) => {
  t.is(classifyFailure(failed('unavailable')), 'bad');
  t.is(classifyFailure(failed('timeout')), 'bad');
  t.is(classifyFailure(failed('rejected', { status: 400 })), 'ok');
  t.is(classifyFailure(failed('rejected')), 'none', 'we did not call it');
  for (const failure of ['unavailable', 'timeout'] as const)
    t.is(classifyFailure(failed(failure, { isRequestFailure: true })), 'none');
  t.is(classifyFailure(failed('rate_limited')), 'limited');
  t.is(classifyFailure(failed('auth')), 'none');
});

test('a key is on cooldown for as long as its vendor specifies, and only for one model if the error is about that model', (t) => {
  t.like(findCooldown(failed('rate_limited', { status: 429, retryAfterMs: 7_500 })), {
    scope: 'keyOnRoute',
    forMs: 7_500,
  });
  t.is(findCooldown(failed('rate_limited', { status: 429 }))?.forMs, 1_000);
  t.is(findCooldown(failed('rate_limited', { status: 429, retryAfterMs: 1e12 }))?.forMs, 3_600_000);
  t.is(findCooldown(failed('auth', { status: 401 }))?.scope, 'key');
  t.is(findCooldown(failed('auth', { status: 429 }))?.scope, 'key');
  // These may be caused by the request.
  for (const status of [402, 403]) {
    const cooldown = findCooldown(failed('auth', { status }));
    t.like(cooldown, { scope: 'keyOnRoute', forMs: 600_000, forAccountMs: 20_000 });
  }
  for (const failure of ['rejected', 'missing', 'too_large', 'unavailable', 'timeout'] as const)
    t.is(findCooldown(failed(failure)), null);
});

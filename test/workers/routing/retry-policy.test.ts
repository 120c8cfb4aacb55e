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

test('what may pass elsewhere is tried again: three times, for as long as one call may take, before any output', (t) => {
  for (const failure of ['unavailable', 'timeout', 'rate_limited', 'auth'] as const) {
    const error = failed(failure);
    t.true(mayRetry(error, fresh));
    t.true(mayRetry(error, { ...fresh, attempts: maxAttempts - 1 }));
    t.false(mayRetry(error, { ...fresh, attempts: maxAttempts }));
    t.false(mayRetry(error, { ...fresh, elapsedMs: 1_000 }));
    t.false(mayRetry(error, { ...fresh, hasOutput: true }));
    t.false(mayRetry(error, { ...fresh, calls: 8 }), 'not even past keys without end');
  }
  t.false(mayRetry(failed('rejected'), fresh));
});

test('what is too dear to be made twice is not asked for again while a vendor may go on with it, and otherwise is', (t) => {
  const dear = { ...fresh, retriesTimeouts: false };
  const leftAtIt = failed('timeout', { mayStillRun: true });
  t.false(mayRetry(leftAtIt, dear));
  t.true(mayRetry(leftAtIt, fresh));
  t.true(mayRetry(failed('timeout'), dear), 'it was not asked');
  t.true(mayRetry(failed('timeout', { status: 504 }), dear), 'it gave up itself');
  t.true(mayRetry(failed('unavailable', { status: 503 }), dear));
  t.is(classifyFailure(leftAtIt), 'bad', 'it may hang');
});

test('what a vendor does not know is tried on another route, and on no other key', (t) => {
  t.true(mayRetry(failed('missing'), fresh));
  t.false(mayRetry(failed('missing'), { ...fresh, hasOtherRoute: false }));
  t.is(classifyFailure(failed('missing')), 'none');
});

test('what is too large for one key is tried with every other, and not again', (t) => {
  const error = failed('too_large', { status: 429 });
  t.true(mayRetry(error, fresh));
  t.false(mayRetry(error, { ...fresh, hasOtherRoute: false }));
  t.is(chooseBackoffMs(error, 1, 0.9), 0);
  t.is(classifyFailure(error), 'none');
});

test('the wait before a retry has full jitter below 100 ms, then 200 ms, and 2 s at the most', (t) => {
  const error = failed('unavailable');
  for (const random of [0, 0.25, 0.999]) {
    t.is(chooseBackoffMs(error, 1, random), random * 100);
    t.is(chooseBackoffMs(error, 2, random), random * 200);
    t.is(chooseBackoffMs(error, 30, random), random * 2_000);
  }
});

test('past a key at its limit or at fault the next one is tried at once', (t) => {
  t.is(chooseBackoffMs(failed('auth'), 0, 0.9), 0);
  t.is(chooseBackoffMs(failed('rate_limited'), 1, 0.9), 0);
});

test('only failures of the server speak against a route', (t) => {
  t.is(classifyFailure(failed('unavailable')), 'bad');
  t.is(classifyFailure(failed('timeout')), 'bad');
  t.is(classifyFailure(failed('rejected', { status: 400 })), 'ok');
  t.is(classifyFailure(failed('rejected')), 'none', 'we did not ask');
  for (const failure of ['unavailable', 'timeout'] as const)
    t.is(classifyFailure(failed(failure, { isRequestFailure: true })), 'none');
  t.is(classifyFailure(failed('rate_limited')), 'limited');
  t.is(classifyFailure(failed('auth')), 'none');
});

test('a key is set aside for as long as its vendor says, and where only one model is meant, for that one', (t) => {
  t.like(findCooldown(failed('rate_limited', { status: 429, retryAfterMs: 7_500 })), {
    scope: 'keyOnRoute',
    forMs: 7_500,
  });
  t.is(findCooldown(failed('rate_limited', { status: 429 }))?.forMs, 1_000);
  t.is(findCooldown(failed('rate_limited', { status: 429, retryAfterMs: 1e12 }))?.forMs, 3_600_000);
  t.is(findCooldown(failed('auth', { status: 401 }))?.scope, 'key');
  t.is(findCooldown(failed('auth', { status: 429 }))?.scope, 'key');
  // These may be for what was asked.
  for (const status of [402, 403]) {
    const cooldown = findCooldown(failed('auth', { status }));
    t.like(cooldown, { scope: 'keyOnRoute', forMs: 600_000, forAccountMs: 20_000 });
  }
  for (const failure of ['rejected', 'missing', 'too_large', 'unavailable', 'timeout'] as const)
    t.is(findCooldown(failed(failure)), null);
});

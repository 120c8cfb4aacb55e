import test from 'ava';

import { toEmbeddedError, toUpstreamError } from '../../../../workers/upstreams/anthropic/from-error.ts';
import type { UpstreamError } from '../../../../workers/upstreams/upstream.ts';

const KEY = 'sk-ant-api03-abcdefghijkl';
const NOW_MS = Date.UTC(2026, 0, 1);

/** The documented form of an error (Anthropic's API reference, Errors). */
function toBody(type: string, message = 'No.', details?: object): object {
  return { type: 'error', error: { type, message, ...(details && { details }) }, request_id: 'req_011C' };
}

function toError(status: number, body: unknown, headers: Record<string, string> = {}): UpstreamError {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return toUpstreamError({ status, headers, body: Buffer.from(text) }, KEY, NOW_MS);
}

const documented = [
  [400, 'invalid_request_error', 'rejected'],
  [401, 'authentication_error', 'auth'],
  [402, 'billing_error', 'auth'],
  [403, 'permission_error', 'auth'],
  [404, 'not_found_error', 'missing'],
  [413, 'request_too_large', 'rejected'],
  [429, 'rate_limit_error', 'rate_limited'],
  [500, 'api_error', 'unavailable'],
  [504, 'timeout_error', 'timeout'],
  [529, 'overloaded_error', 'unavailable'],
] as const;

test('each documented error maps to its failure kind, as a status and within a response', (t) => {
  for (const [status, type, failure] of documented) {
    t.like(toError(status, toBody(type)), { failure, status }, type);
    t.like(toEmbeddedError({ ...toBody(type) }, KEY), { failure, status, retryAfterMs: null }, type);
  }
});

test('a rejected request has the vendor’s message, and other errors have status and type', (t) => {
  t.is(toError(400, toBody('invalid_request_error', 'messages: too many')).message, 'messages: too many');
  t.is(
    toError(529, toBody('overloaded_error', `Overloaded, key ${KEY}`)).message,
    'the upstream responded with 529 (overloaded_error): Overloaded, key [redacted]',
  );
  t.is(
    toError(401, toBody('authentication_error', `invalid x-api-key ${KEY}`)).message,
    'the upstream responded with 401 (authentication_error)',
  );
});

test('the retry delay is read from the headers', (t) => {
  const body = toBody('rate_limit_error');
  t.is(toError(429, body, { 'retry-after': '7' }).retryAfterMs, 7000);
  t.is(toError(429, body, { 'retry-after-ms': '250' }).retryAfterMs, 250);
  t.is(toError(429, body, { 'retry-after': new Date(NOW_MS + 3000).toUTCString() }).retryAfterMs, 3000);
});

test('the status decides if it is about the key; otherwise the error type decides over an unusual status', (t) => {
  t.is(toError(403, toBody('invalid_request_error')).failure, 'auth');
  t.is(toError(429, toBody('invalid_request_error')).failure, 'rate_limited');
  t.is(toError(415, toBody('invalid_request_error')).failure, 'rejected');
  t.is(toError(503, toBody('a type of tomorrow')).failure, 'unavailable');
  t.is(toError(502, '<html>Bad gateway</html>').failure, 'unavailable');
  t.is(toError(400, '').failure, 'rejected');
  t.like(toEmbeddedError({ type: 'error' }, KEY), { failure: 'unavailable', status: 500 });
});

test('an error code about the account is an auth failure, for any status and type', (t) => {
  const spent = { error_code: 'enforced_spend_limit_reached' };
  t.is(toError(429, toBody('rate_limit_error', 'Limit.', spent)).failure, 'auth');
  t.is(
    toError(400, toBody('invalid_request_error', 'On hold.', { error_code: 'organization_on_hold' })).failure,
    'auth',
  );
  const ramp = { error_code: 'ramp_limit_exceeded' };
  t.is(toError(429, toBody('rate_limit_error', 'Slower.', ramp)).failure, 'rate_limited');
});

/** Messages as reported in anthropic-sdk-typescript#618 and in the claude-code issues. */
const EMPTY_ACCOUNT =
  'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.';
const SPENT_ACCOUNT =
  'You have reached your specified API usage limits. You will regain access on 2026-02-01 at 00:00 UTC.';

test('an exhausted account, identified only by its message, is an auth failure, and a similar message is not', (t) => {
  t.is(toError(400, toBody('invalid_request_error', EMPTY_ACCOUNT)).failure, 'auth');
  t.is(toError(400, toBody('invalid_request_error', SPENT_ACCOUNT)).failure, 'auth');
  t.is(toEmbeddedError({ ...toBody('invalid_request_error', EMPTY_ACCOUNT) }, KEY).failure, 'auth');
  t.is(toError(400, toBody('invalid_request_error', `messages.0: ${EMPTY_ACCOUNT}`)).failure, 'rejected');
  t.is(toError(400, toBody('invalid_request_error', 'Your credit balance')).failure, 'rejected');
  t.is(toError(500, toBody('api_error', EMPTY_ACCOUNT)).failure, 'unavailable');
});

test('a prompt too long for the plan of a key is not treated as a rate limit, because waiting does not help', (t) => {
  const text = 'Extra usage is required for long context requests.';
  t.is(toError(429, toBody('rate_limit_error', text)).failure, 'too_large');
});

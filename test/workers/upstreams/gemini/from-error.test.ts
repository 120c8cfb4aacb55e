import test from 'ava';

import { toEmbeddedError, toUpstreamError } from '../../../../workers/upstreams/gemini/from-error.ts';
import type { UpstreamError } from '../../../../workers/upstreams/upstream.ts';

const KEY = 'AIzaSyD-0123456789abcdef';

function toError(status: number, body: unknown, headers: Record<string, string> = {}): UpstreamError {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return toUpstreamError({ status, headers, body: Buffer.from(text) }, KEY);
}

const error = (code: number, status: string, details?: object[]): object => ({
  error: { code, message: `it is ${status}`, status, ...(details === undefined ? {} : { details }) },
});

/** Status, Google's error name, failure kind for routing (the API's pages on errors; google.rpc.Code). */
const TABLE = [
  [400, 'INVALID_ARGUMENT', 'rejected'],
  [400, 'FAILED_PRECONDITION', 'auth'],
  [401, 'UNAUTHENTICATED', 'auth'],
  [403, 'PERMISSION_DENIED', 'auth'],
  [404, 'NOT_FOUND', 'missing'],
  [429, 'RESOURCE_EXHAUSTED', 'rate_limited'],
  [499, 'CANCELLED', 'unavailable'],
  [500, 'INTERNAL', 'unavailable'],
  [503, 'UNAVAILABLE', 'unavailable'],
  [504, 'DEADLINE_EXCEEDED', 'timeout'],
] as const;

test('every error name maps to its failure kind, as a status and within a response', (t) => {
  for (const [status, name, failure] of TABLE) {
    t.like(toError(status, error(status, name)), { failure, status }, name);
    t.like(toError(status, [error(status, name)]), { failure, status }, name);
    t.like(toEmbeddedError(error(status, name), KEY), { failure, status }, name);
    t.like(toEmbeddedError({ error: { status: name } }, KEY), { failure, status }, name);
  }
});

test('the status decides if an error has no name; without a name and a status it is an unavailable failure', (t) => {
  t.like(toError(429, '<html>Too many</html>'), { failure: 'rate_limited', status: 429 });
  t.like(toError(502, ''), { failure: 'unavailable', status: 502 });
  t.like(toError(403, { error: { code: 403 } }), { failure: 'auth' });
  t.like(toEmbeddedError({ error: { code: 404 } }, KEY), { failure: 'missing', status: 404 });
  t.like(toEmbeddedError({ error: {} }, KEY), { failure: 'unavailable', status: 500 });
});

/** From FirebaseExtended/vertexai-sdk-test-data, googleai/unary-failure-api-key.txt. */
const WRONG_KEY = {
  error: {
    code: 400,
    message: 'API key not valid. Please pass a valid API key.',
    status: 'INVALID_ARGUMENT',
    details: [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'API_KEY_INVALID',
        domain: 'googleapis.com',
        metadata: { service: 'generativelanguage.googleapis.com' },
      },
      { '@type': 'type.googleapis.com/google.rpc.DebugInfo', detail: `Invalid API key: ${KEY}` },
    ],
  },
};

test('an invalid key is an auth failure despite its status 400, and is never echoed', (t) => {
  for (const wrong of [toError(400, WRONG_KEY), toEmbeddedError(WRONG_KEY, KEY)]) {
    t.is(wrong.failure, 'auth');
    t.false(`${wrong.message} ${wrong.stack}`.includes(KEY));
  }
  const echoed = toError(400, { error: { code: 400, message: `bad ${KEY}`, status: 'INVALID_ARGUMENT' } });
  t.is(echoed.message, 'bad [redacted]');
});

/** The shape of a 429 (google.rpc.RetryInfo). */
test('the retry delay is read from the header, or from the details if there is none', (t) => {
  const details = (retryDelay: string): object[] => [
    { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [] },
    { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay },
  ];
  const limited = (retryDelay: string, headers = {}): number | null =>
    toError(429, error(429, 'RESOURCE_EXHAUSTED', details(retryDelay)), headers).retryAfterMs;
  t.is(limited('38s'), 38_000);
  t.is(limited('0.7501s'), 751);
  t.is(limited('soon'), null);
  t.is(limited('38s', { 'retry-after': '2' }), 2000);
  t.is(toError(429, error(429, 'RESOURCE_EXHAUSTED')).retryAfterMs, null);
  t.is(toEmbeddedError(error(429, 'RESOURCE_EXHAUSTED', details('3s')), KEY).retryAfterMs, 3000);
});

test('the text of an error message does not affect the failure kind', (t) => {
  const message = 'API key not valid. Quota exceeded, retry in 5s. API_KEY_INVALID';
  t.like(toError(400, { error: { code: 400, message, status: 'INVALID_ARGUMENT' } }), {
    failure: 'rejected',
    retryAfterMs: null,
  });
});

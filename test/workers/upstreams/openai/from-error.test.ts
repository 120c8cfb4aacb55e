import test from 'ava';

import type { UpstreamError, UpstreamFailure } from '../../../../workers/upstreams/upstream.ts';
import { toEmbeddedError, toUpstreamError } from '../../../../workers/upstreams/openai/from-error.ts';

const KEY = 'sk-proj-1234567890';

function toError(status: number, body: unknown, headers: Record<string, string> = {}): UpstreamError {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return toUpstreamError({ status, headers, body: Buffer.from(text) }, KEY);
}

function refusal(code: string | null, message = 'No.', type = 'invalid_request_error'): object {
  return { error: { message, type, param: null, code } };
}

test('every status maps to its failure kind', (t) => {
  const expected: Record<UpstreamFailure, number[]> = {
    rejected: [400, 413, 422],
    missing: [404],
    auth: [401, 402, 403],
    rate_limited: [429],
    too_large: [],
    timeout: [408, 504],
    unavailable: [302, 405, 409, 418, 500, 502, 503, 529],
  };
  for (const [failure, statuses] of Object.entries(expected)) {
    for (const status of statuses) {
      const error = toError(status, refusal(null));
      t.is(error.failure, failure as UpstreamFailure, String(status));
      t.is(error.status, status);
    }
  }
});

test('an exhausted account is an auth failure, for any status', (t) => {
  t.is(toError(429, refusal('insufficient_quota')).failure, 'auth');
  t.is(toError(429, refusal(null, 'No.', 'insufficient_quota')).failure, 'auth');
  t.is(toError(400, refusal('billing_hard_limit_reached')).failure, 'auth');
  t.is(toError(429, refusal('rate_limit_exceeded', 'insufficient_quota')).failure, 'rate_limited');
});

test('LiteLLM’s 400 for a wrong key is an auth failure, and a message that quotes it is not', (t) => {
  const body = { error: { message: 'No connected db.', type: 'no_db_connection', param: null, code: '400' } };
  t.is(toError(400, body).failure, 'auth');
  t.is(toError(400, refusal(null, 'Invalid value: No connected db.')).failure, 'rejected');
  t.is(toError(400, refusal(null, 'No connected db. is not a tool')).failure, 'rejected');
});

test('a 429 and a 503 include their retry delay', (t) => {
  t.is(toError(429, refusal(null), { 'retry-after-ms': '250', 'retry-after': '1' }).retryAfterMs, 250);
  t.is(toError(503, refusal(null), { 'retry-after': '2' }).retryAfterMs, 2000);
  t.is(toError(429, refusal(null)).retryAfterMs, null);
});

test('a rejected request has the vendor’s message, without the key and limited in length', (t) => {
  t.is(toError(400, refusal('x', `Bad ${KEY}.`)).message, 'Bad [redacted].');
  t.is(toError(400, refusal('x', 'y'.repeat(5000))).message.length, 500);
});

test('an error about the key never contains the vendor’s message', (t) => {
  const error = toError(401, refusal('invalid_api_key', 'Incorrect API key provided: sk-pr***7890.'));
  t.is(error.message, 'the upstream responded with 401 (invalid_api_key)');
});

test('the error formats of compatible servers are supported', (t) => {
  const messages: [unknown, string][] = [
    [{ error: 'too long' }, 'too long'],
    [{ error: 'too long', error_type: 'Validation' }, 'too long'],
    [{ object: 'error', message: 'too long', type: 'BadRequestError', code: 400 }, 'too long'],
    [{ detail: 'too long' }, 'too long'],
    [{ detail: [{ loc: ['body'], msg: 'too long' }, { msg: 'too wide' }] }, 'too long; too wide'],
    [{ detail: [{ loc: ['body', 'messages', 0, 'name'], msg: 'unknown' }] }, 'messages.0.name: unknown'],
    [
      { object: 'error', message: { detail: [{ loc: ['body', 'user'], msg: 'unknown' }] }, code: null },
      'user: unknown',
    ],
    ['<html>Bad Request</html>', 'the upstream responded with 400'],
    ['', 'the upstream responded with 400'],
    ['null', 'the upstream responded with 400'],
    [[1], 'the upstream responded with 400'],
  ];
  for (const [body, message] of messages) {
    t.is(toError(400, body).message, message);
  }
});

test('a request that no server of the vendor takes is rejected, though the status is 404', (t) => {
  const message = 'No endpoints found that support image input';
  t.is(toError(404, { error: { message, code: 404 } }).failure, 'rejected');
  t.is(toError(404, { error: { message: 'No endpoints found for x/y', code: 404 } }).failure, 'missing');
});

/** What servers say with a 500 about one request, each as it is sent. */
const refusedWith500 = {
  'a text longer than llama.cpp’s batch':
    'input (596 tokens) is too large to process. increase the physical batch size (current batch size: 512)',
  'a prompt longer than llama.cpp’s slot':
    'the request exceeds the available context size, try increasing it',
  'an image without a projector':
    'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj',
  'audio without a projector': 'audio input is not supported',
  'an image for a model of Ollama that does not see': 'this model does not support image input',
  'audio for a model of Ollama that does not hear': 'this model does not support audio input',
  'an empty image for Ollama': 'image data required for image input',
  'a vector with NaN at Ollama': 'failed to encode response: json: unsupported value: NaN',
  'arguments that are not JSON': 'Failed to parse tool call arguments as JSON',
  'JSON that llama.cpp cannot parse':
    '[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing object key',
  'an image that llama.cpp cannot load': 'Failed to load image or audio file',
  'an image that a server cannot decode': 'Failed to decode image: unknown format',
  'an image that a server cannot process': 'Failed to process image',
  'an invalid image': 'Invalid image: cannot identify image file',
};

for (const [name, message] of Object.entries(refusedWith500)) {
  test(`a server’s 500 about ${name} is a rejection with its words, however it is wrapped and written`, (t) => {
    for (const text of [message, message.toUpperCase()])
      for (const body of [
        { error: { code: 500, message: text, type: 'server_error' } },
        { error: text },
        { message: text, code: 500 },
        { detail: text },
      ]) {
        for (const error of [toError(500, body), toEmbeddedError(body, KEY)]) {
          t.is(error.failure, 'rejected', JSON.stringify(body));
          t.is(error.message, text);
        }
      }
  });
}

test('an error within a 200 response is classified by its code or type', (t) => {
  const expected: [object, UpstreamFailure][] = [
    [{ error: { message: 'x', code: 502 } }, 'unavailable'],
    [{ error: { message: 'x', code: 429 } }, 'rate_limited'],
    [{ error: { message: 'x', code: '400' } }, 'rejected'],
    [{ error: { message: 'x', type: 'server_error' } }, 'unavailable'],
    [{ error: { message: 'x', code: 'rate_limit_exceeded', type: 'requests' } }, 'rate_limited'],
    [{ error: { message: 'x', code: 'insufficient_quota' } }, 'auth'],
    [{ error: { message: 'x', code: 'context_length_exceeded' } }, 'rejected'],
    [{ error: { message: 'x', type: 'invalid_request_error' } }, 'rejected'],
    [{ error: 'boom' }, 'unavailable'],
    [{ object: 'error', message: 'x', code: 40_303 }, 'unavailable'],
  ];
  for (const [body, failure] of expected) {
    t.is(toEmbeddedError(body, KEY).failure, failure, JSON.stringify(body));
  }
});

test('a request flagged by moderation is rejected, and is not an auth failure', (t) => {
  const flagged = {
    code: 403,
    message: 'Your input was flagged.',
    metadata: { reasons: ['violence'], flagged_input: 'how to …' },
  };
  const error = toError(403, { error: flagged });
  t.is(error.failure, 'rejected');
  t.is(error.message, 'Your input was flagged.');
  t.is(toEmbeddedError({ error: flagged }, KEY).failure, 'rejected');
});

test('content rejected with a 403 is not an auth failure, and its message omits the ids of the key owner', (t) => {
  const code = 'The caller does not have permission to execute the specified operation';
  const text =
    'Content violates usage guidelines. Team: team-7, API key ID: key-9, Failed check: SAFETY_CHECK_TYPE_BIO';
  const error = toError(403, { code, error: text });
  t.is(error.failure, 'rejected');
  t.is(error.message, 'Content violates usage guidelines.');
  t.is(
    toError(403, { code, error: 'Access to the endpoint is denied. Content violates nothing.' }).failure,
    'auth',
  );
});

test('a request larger than the whole limit per minute is distinguished from a rate limit, which waiting resolves', (t) => {
  const large = 'Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 45000.';
  t.is(toError(429, refusal('rate_limit_exceeded', large, 'tokens')).failure, 'too_large');
  const reached =
    'Rate limit reached for gpt-x on tokens per min (TPM): Limit 30000, Used 29937, Requested 385.';
  t.is(toError(429, refusal('rate_limit_exceeded', reached, 'tokens')).failure, 'rate_limited');
});

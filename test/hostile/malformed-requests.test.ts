import test, { type ExecutionContext } from 'ava';
import { errorKinds } from '../../shared/contract/error-kinds.ts';
import { httpStatusErrors } from '../../shared/contract/http-status-errors.ts';
import type { RawResponse } from '../support/raw-response.ts';
import { useStack } from '../support/stack.ts';
import { sendMalformedRequests } from './attacks/malformed-requests.ts';

const statusOf: Readonly<Record<string, readonly [status: number, code: string]>> = {
  garbage: [400, 'validation_failed'],
  'a TLS handshake': [400, 'validation_failed'],
  'zero bytes': [400, 'validation_failed'],
  'HTTP/2 with prior knowledge': [505, 'validation_failed'],
  'an unknown version': [505, 'validation_failed'],
  'no version': [505, 'validation_failed'],
  'HTTP/2 in the clear': [505, 'validation_failed'],
  'an unknown method': [501, 'method_not_allowed'],
  CONNECT: [501, 'method_not_allowed'],
  'a header without a colon': [400, 'validation_failed'],
  'a header with a control character': [400, 'validation_failed'],
  'headers that are too large': [431, 'payload_too_large'],
  'too many headers': [431, 'payload_too_large'],
  'no Host': [400, 'validation_failed'],
  'two Hosts': [400, 'validation_failed'],
  'an invalid Host': [400, 'validation_failed'],
  'an unknown expectation': [417, 'validation_failed'],
  'a length and chunks': [400, 'validation_failed'],
  'two lengths': [400, 'validation_failed'],
  'a negative length': [400, 'validation_failed'],
  'a chunk without a size': [400, 'validation_failed'],
  'chunk extensions that are too long': [413, 'payload_too_large'],
  'a chunk longer than its size': [400, 'validation_failed'],
};

/** Asserts a single response in the standard error format. */
function checkError(
  t: ExecutionContext,
  name: string,
  response: RawResponse | undefined,
  code: string,
): void {
  if (response === undefined) {
    t.fail(`${name}: no response`);
    return;
  }
  const { status, headers, body } = response;
  t.regex(headers['x-request-id'] ?? '', /^[0-9a-f-]{36}$/, name);
  t.regex(headers['content-type'] ?? '', /^application\/json/, name);
  t.is(headers['content-length'], String(Buffer.byteLength(body)), name);
  t.is(headers['connection'], 'close', name);
  const { error, detail } = JSON.parse(body) as {
    error: { code: string; message: string; type: string; param: null };
    detail: { error: string; message_en: string; message_ru: string };
  };
  t.is(error.code, code, `${name}: ${status}`);
  t.is(detail.error, code, name);
  t.is(detail.message_en, error.message);
  // The message describes the status, or is that of payload_too_large.
  t.true(detail.message_ru.startsWith(httpStatusErrors[status]?.ru ?? errorKinds.payload_too_large.ru), name);
  t.is(error.type, 'invalid_request_error', name);
  t.is(headers['allow'], status === 501 ? 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT' : undefined, name);
}

test('a malformed request gets the documented error response with a request id, and its connection is closed', async (t) => {
  const stack = await useStack(t);
  const { apiKey } = await stack.createAccount();
  const seen = await sendMalformedRequests({ url: stack.url, apiKey });
  const responsesByName = { ...seen.malformed, ...seen.bodies };
  t.deepEqual(Object.keys(responsesByName).sort(), Object.keys(statusOf).sort());
  for (const [name, [status, code]] of Object.entries(statusOf)) {
    const responses = responsesByName[name]!;
    t.is(responses.length, 1, name);
    t.is(responses[0]?.status, status, `${name}: ${responses[0]?.body}`);
    checkError(t, name, responses[0], code);
  }
  // The request before the garbage is valid, and is served.
  t.deepEqual(
    seen.afterRequest.map(({ status }) => status),
    [200, 400],
  );
  checkError(t, 'after a request', seen.afterRequest[1], 'validation_failed');
  t.is(seen.continuing.length, 1);
  checkError(t, 'continuing', seen.continuing[0], 'validation_failed');
});

import test, { type ExecutionContext } from 'ava';
import { errorKinds } from '../../shared/contract/error-kinds.ts';
import { httpFaults } from '../../shared/contract/http-faults.ts';
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
  'a Host that is none': [400, 'validation_failed'],
  'an unknown expectation': [417, 'validation_failed'],
  'a length and chunks': [400, 'validation_failed'],
  'two lengths': [400, 'validation_failed'],
  'a negative length': [400, 'validation_failed'],
  'a chunk that has no size': [400, 'validation_failed'],
  'chunk extensions that are too long': [413, 'payload_too_large'],
  'a chunk that is longer than it says': [400, 'validation_failed'],
};

/** One answer, in the form that every error has. */
function checkError(
  t: ExecutionContext,
  name: string,
  response: RawResponse | undefined,
  code: string,
): void {
  if (response === undefined) {
    t.fail(`${name}: no answer`);
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
  // In words of the status, where it is none of the code's own.
  t.true(detail.message_ru.startsWith(httpFaults[status]?.ru ?? errorKinds.payload_too_large.ru), name);
  t.is(error.type, 'invalid_request_error', name);
  t.is(headers['allow'], status === 501 ? 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT' : undefined, name);
}

test('whatever is no request is answered in the documented form, with an id, and the connection closed', async (t) => {
  const stack = await useStack(t);
  const { apiKey } = await stack.createAccount();
  const seen = await sendMalformedRequests({ url: stack.url, apiKey });
  const answers = { ...seen.malformed, ...seen.bodies };
  t.deepEqual(Object.keys(answers).sort(), Object.keys(statusOf).sort());
  for (const [name, [status, code]] of Object.entries(statusOf)) {
    const responses = answers[name]!;
    t.is(responses.length, 1, name);
    t.is(responses[0]?.status, status, `${name}: ${responses[0]?.body}`);
    checkError(t, name, responses[0], code);
  }
  // The request before it is whole, and is served.
  t.deepEqual(
    seen.behindRequest.map(({ status }) => status),
    [200, 400],
  );
  checkError(t, 'behind a request', seen.behindRequest[1], 'validation_failed');
  t.is(seen.goingOn.length, 1);
  checkError(t, 'going on', seen.goingOn[0], 'validation_failed');
});

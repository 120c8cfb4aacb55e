import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import test from 'ava';
import type { ErrorBody } from '../support/call-api.ts';
import { startStack, type TestStack } from '../support/stack.ts';

/** Bodies of operations that take at most 64 KB. */

let stack: TestStack;
let apiKey: string;

test.before(async () => {
  stack = await startStack({ workers: [] });
  ({ apiKey } = await stack.createAccount());
});

test.after.always(() => stack.close());

interface Issue {
  readonly loc: readonly (string | number)[];
  readonly type: string;
}

async function redeem(body: string | Buffer, headers: Record<string, string> = {}) {
  const response = await fetch(`${stack.url}/v1/users/redeem`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', ...headers },
    body,
  });
  const { error, detail } = (await response.json()) as ErrorBody;
  const issues = Array.isArray(detail) ? (detail as readonly Issue[]) : [];
  return [response.status, error.code, ...issues.map(({ loc, type }) => `${loc.join('.')}: ${type}`)];
}

const nested = (levels: number): string => `{"code":${'['.repeat(levels)}${']'.repeat(levels)}}`;

test('a body gets the same errors as a larger one of another operation', async (t) => {
  const invalid = [422, 'validation_failed'];
  for (const [body, ...issues] of [
    ['', 'body.code: required'],
    ['{}', 'body.code: required'],
    ['5', 'body: type'],
    ['"text"', 'body: type'],
    ['[]', 'body: type'],
    ['null', 'body: type'],
    ['{"code":', 'body: json_invalid'],
    ['nonsense', 'body: json_invalid'],
    ['{"code":"\\ud83d"}', 'body.code: unicode_invalid'],
    [Buffer.from([0x7b, 0xff, 0x7d]), 'body: unicode_invalid'],
    [nested(150), 'body: value_error'],
  ] as const)
    t.deepEqual(await redeem(body), [...invalid, ...issues], String(body).slice(0, 40));
});

test('fields that some parsers refuse are ignored like other unknown ones', async (t) => {
  t.deepEqual(await redeem('{"code":"x","__proto__":{"a":1}}'), await redeem('{"code":"x"}'));
});

test('a body may start with a byte order mark', async (t) => {
  t.deepEqual(await redeem('\ufeff{"code":"MG-unknown"}'), await redeem('{"code":"MG-unknown"}'));
});

test('a compressed body and one of another type are not read', async (t) => {
  t.is((await redeem('{}', { 'content-encoding': 'gzip' }))[0], 415);
  t.is((await redeem('code=x', { 'content-type': 'application/x-www-form-urlencoded' }))[0], 415);
  t.is((await redeem('{}', { 'content-type': 'text/plain' }))[0], 415);
});

test('the rest of a body that is refused is drained, so that its caller sees the response', async (t) => {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  for (const start of ['{"code":"\u0000', '{"code":"']) {
    const call = request(`${stack.url}/v1/users/redeem`, { agent: false, method: 'POST', headers });
    call.write(Buffer.from(start.replace('\u0000', '\xff'), 'latin1'));
    for (let i = 0; i < 8; i++) call.write('a'.repeat(32_000));
    call.end('"}');
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    t.is(response.statusCode, start.includes('\u0000') ? 422 : 413);
    await json(response);
  }
});

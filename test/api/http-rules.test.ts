import test from 'ava';
import type { ErrorBody } from '../support/call-api.ts';
import { sendRaw } from '../support/raw-caller.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';

/** Requirements of HTTP for a server (RFC 9110, RFC 9112, RFC 3986, RFC 6750). */

const catalog = `
upstreams:
  vendor: { kind: openai, baseUrl: "http://127.0.0.1:9/v1" }
models:
  - { id: maker/model_1, type: chat, context: 8192, pricing: { prompt: 1 }, routes: [{ upstream: vendor, model: x }] }
`;

let stack: TestStack;
let account: TestAccount;

test.before(async () => {
  stack = await startStack({ catalog });
  account = await stack.createAccount();
});
test.after.always(() => stack.close());

const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${stack.url}${path}`, { headers });
const withKey = (): Record<string, string> => ({ authorization: `Bearer ${account.apiKey}` });
const statusOf = async (
  line: string,
  headers = 'host: gateway\r\nconnection: close\r\n',
): Promise<number[]> => {
  const responses = await sendRaw(stack.url, `${line}\r\n${headers}\r\n`);
  return responses.map(({ status }) => status);
};

test('paths are case-sensitive, and unnecessary escapes in them make no difference', async (t) => {
  for (const [path, status] of [
    ['/V1/models', 404],
    ['/v1/Models', 404],
    ['/v1/models/Status', 404],
    ['/v1/%6dodels', 200],
    ['/v1/%6Dodels', 200],
    ['/v1/models/maker/model_1', 200],
    ['/v1/models/maker%2Fmodel%5f1', 200],
    ['/v1/models/maker%2fmodel%5F1', 200],
    ['/v1%2Fmodels', 404],
    ['/v1/%2Fmodels', 404],
    ['/v1/models/%', 404],
    ['/v1/models/%4', 404],
    ['/v1/models/%zz', 404],
    ['/v1/models/%ff', 404],
    ['/v1/models/%c3%28', 404],
    ['/v1/models/%00', 404],
    ['/%ff', 404],
    ['/files/%ff', 404],
  ] as const) {
    t.is((await get(path)).status, status, path);
  }
  const statuses = (await (await get('/v1/models/%73tatus')).json()) as object;
  t.true('maker/model_1' in statuses);
});

test('a request target may be an absolute URL, or * for the server itself', async (t) => {
  for (const [line, status] of [
    ['GET http://elsewhere.example/v1/models HTTP/1.1', 200],
    ['GET HTTP://elsewhere.example/v1/models?type=chat HTTP/1.1', 200],
    // The start page.
    ['GET http://elsewhere.example HTTP/1.1', 200],
    ['GET http://elsewhere.example/elsewhere HTTP/1.1', 404],
    ['GET http://[::1/v1/models HTTP/1.1', 200],
    ['GET http://a@b:c@d/v1/models HTTP/1.1', 200],
    ['GET ftp://[x/v1/models HTTP/1.1', 404],
    ['OPTIONS * HTTP/1.1', 204],
    ['GET * HTTP/1.1', 400],
    ['GET /v1/models HTTP/1.1', 200],
  ] as const) {
    t.deepEqual(await statusOf(line), [status], line);
  }
  const [options] = await sendRaw(
    stack.url,
    'OPTIONS * HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n',
  );
  t.is(options?.headers['allow'], 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT');
});

test('an unsupported method is a 501, one that this path does not allow is a 405, and both list the allowed methods', async (t) => {
  for (const [method, status] of [
    ['TRACE', 501],
    ['PURGE', 501],
    ['DELETE', 405],
  ] as const) {
    const [response] = await sendRaw(
      stack.url,
      `${method} /v1/models HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n`,
    );
    t.is(response?.status, status, method);
    t.regex(response!.headers['allow']!, /GET/);
    t.is((JSON.parse(response!.body) as ErrorBody).error.code, 'method_not_allowed');
  }
});

test('a path without parameters does not allow the methods of a parameterized path that also matches', async (t) => {
  for (const [method, path] of [
    ['GET', '/v1/web/api-accounts/link'],
    ['DELETE', '/v1/web/api-accounts/first'],
  ] as const) {
    const response = await fetch(`${stack.url}${path}`, { method });
    t.deepEqual([response.status, response.headers.get('allow')], [405, 'POST'], path);
  }
});

test('an unsupported upgrade is ignored, and HTTP/1.0 needs no Host', async (t) => {
  const upgrade = 'host: gateway\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n';
  t.deepEqual(await statusOf('GET /v1/models HTTP/1.1', upgrade), [200]);
  t.deepEqual(await statusOf('GET /v1/models HTTP/1.0', ''), [200]);
  t.deepEqual(await statusOf('GET /v1/models HTTP/1.1', 'host:\r\nconnection: close\r\n'), [200]);
});

test('headers are not dropped: a key after 900 others is found, and more than 1000 headers are rejected', async (t) => {
  const many = (count: number): string =>
    `host: gateway\r\nconnection: close\r\n${'a:\r\n'.repeat(count)}authorization: Bearer ${account.apiKey}\r\n`;
  t.deepEqual(await statusOf('GET /v1/users/profile HTTP/1.1', many(900)), [200]);
  t.deepEqual(await statusOf('GET /v1/users/profile HTTP/1.1', many(1_100)), [431]);
  t.deepEqual(await statusOf('GET /v1/users/profile HTTP/1.1', many(2_500)), [431]);
});

test('numbers in queries are decimal digits, and known parameters may be given only once', async (t) => {
  for (const [query, status, expectedMessage] of [
    ['page=1', 200, ''],
    ['page=007', 200, ''],
    ['', 200, ''],
    ['unknown=1&unknown=2', 200, ''],
    ['page=0x10', 422, 'decimal integer'],
    ['page=1e2', 422, 'decimal integer'],
    ['page=%201', 422, 'decimal integer'],
    ['page=+1', 422, 'decimal integer'],
    ['page=%2B1', 422, 'decimal integer'],
    ['page=1.0', 422, 'decimal integer'],
    ['page=', 422, 'decimal integer'],
    ['page', 422, 'decimal integer'],
    ['page=%D9%A1', 422, 'decimal integer'],
    ['page=-1', 422, 'must be >= 1'],
    ['page=99999999999999999999', 422, 'must be <='],
    ['page=1&page=2', 422, 'more than once'],
    ['page=x&page_size=y', 422, '(and 1 more)'],
  ] as const) {
    const response = await get(`/v1/users/refill_logs?${query}`, withKey());
    const body = (await response.json()) as Partial<ErrorBody>;
    t.is(response.status, status, query);
    t.true((body.error?.message ?? '').includes(expectedMessage), `${query}: ${body.error?.message}`);
    if (status === 422) t.like(body, { error: { param: 'page' }, detail: [{ loc: ['query', 'page'] }] });
  }
  for (const query of ['type=chat&type=image', 'type=&type=chat']) {
    const response = await get(`/v1/models?${query}`);
    t.is(response.status, 422);
    t.regex(((await response.json()) as ErrorBody).error.message, /^type: is specified more than once/);
  }
});

test('a long path is truncated in errors and in the log', async (t) => {
  const path = `/v1/${'a'.repeat(9_000)}`;
  for (const [method, longPath] of [
    ['GET', path],
    ['GET', `/${path}`],
    ['GET', `/v1/models/${'m'.repeat(9_000)}`],
    ['DELETE', `/v1/models/${'m'.repeat(9_000)}`],
  ] as const) {
    const response = await fetch(`${stack.url}${longPath}`, { method });
    const body = await response.text();
    t.true(body.length < 1_500, `${body.length}`);
  }
  const headers = { 'content-type': `text/${'x'.repeat(9_000)}`, ...withKey() };
  const response = await fetch(`${stack.url}/v1/embeddings`, { method: 'POST', headers, body: 'x' });
  t.is(response.status, 415);
  t.true((await response.text()).length < 1_500);
});

const challenge = 'Bearer realm="model-gateway"';

test('the response to a rejected key explains why, in the message and in the challenge, and does not repeat the key', async (t) => {
  const unknownKey = `mg-${'A'.repeat(43)}`;
  for (const [authorization, messagePattern, expected] of [
    [null, /has no API key/, challenge],
    ['Basic dXNlcjpwYXNzd29yZA==', /does not have the form "Bearer <API_KEY>"/, challenge],
    [unknownKey, /does not have the form "Bearer <API_KEY>"/, challenge],
    ['Bearer two words', /does not have the form "Bearer <API_KEY>"/, challenge],
    ['Bearer', /The API key is empty/, challenge],
    ['bearer   ', /The API key is empty/, challenge],
    ['Bearer sk-of-another-service', /not an API key of this gateway/, `${challenge}, error="invalid_token"`],
    [`Bearer ${unknownKey}`, /does not exist or has been replaced/, `${challenge}, error="invalid_token"`],
  ] as const) {
    for (const path of ['/v1/users/profile', '/v1/chat/completions']) {
      const response = await fetch(`${stack.url}${path}`, {
        method: path.endsWith('profile') ? 'GET' : 'POST',
        headers: authorization === null ? {} : { authorization },
      });
      const { error } = (await response.json()) as ErrorBody;
      t.is(response.status, 401);
      t.is(error.code, 'invalid_api_key');
      t.regex(error.message, messagePattern);
      t.is(response.headers.get('www-authenticate'), expected);
      t.false(error.message.includes('AAAA') || error.message.includes('sk-of'));
    }
  }
});

test('the error for a replaced key states that the key was replaced', async (t) => {
  const { apiKey } = await stack.createAccount();
  const headers = { authorization: `Bearer ${apiKey}` };
  const regenerated = await fetch(`${stack.url}/v1/users/regenerate_api_key`, { method: 'PUT', headers });
  t.is(regenerated.status, 200);
  const response = await fetch(`${stack.url}/v1/users/profile`, { headers });
  t.is(response.status, 401);
  t.is(response.headers.get('www-authenticate'), `${challenge}, error="invalid_token"`);
  t.regex(((await response.json()) as ErrorBody).error.message, /been replaced/);
});

test('responses for a key holder, and errors, are never stored by caches', async (t) => {
  for (const [path, headers] of [
    ['/v1/users/profile', withKey()],
    ['/v1/users/stats', withKey()],
    ['/v1/users/refill_logs', withKey()],
    ['/v1/users/profile', {}],
    ['/v1/users/refill_logs?page=0', withKey()],
    ['/v1/nothing', {}],
    ['/v1/chat/completions', {}],
  ] as const) {
    t.is((await get(path, headers)).headers.get('cache-control'), 'no-store', path);
  }
});

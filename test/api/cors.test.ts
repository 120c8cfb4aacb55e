import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { startApi } from '../../api/server.ts';
import type { CorsOrigins } from '../../shared/platform/config/cors-origins.ts';
import { testWithOwnStore } from '../support/own-stores.ts';
import { startApiOf } from '../support/other-api.ts';
import { startStack, useStack, type TestStack } from '../support/stack.ts';
import { useRaw } from '../support/raw-caller.ts';
import { waitFor } from '../support/wait-for.ts';

const origin = 'https://app.example';
const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'Hello!' }] };

let stack: TestStack;
test.before(async () => {
  stack = await startStack({ env: { CORS_ORIGINS: `${origin}, http://localhost:5173` } });
});
test.after.always(() => stack?.close());

/** Starts another api process of the stack, with other origins. */
async function startApiWith(t: ExecutionContext, corsOrigins: CorsOrigins | null): Promise<string> {
  const api = await startApiOf(stack, { ...stack.config, corsOrigins });
  t.teardown(() => api.stop());
  return api.url;
}

/** The headers sent by the official SDK in a browser, except those that browsers always allow. */
const sdkHeaders =
  'authorization,content-type,idempotency-key,last-event-id,prefer,x-request-timeout-ms,x-stainless-lang,' +
  'x-stainless-os,x-stainless-package-version,x-stainless-retry-count,x-stainless-runtime,x-stainless-timeout,' +
  'x-webhook-url';

const preflight = (url: string, from: string): Promise<Response> =>
  fetch(url, {
    method: 'OPTIONS',
    headers: {
      origin: from,
      'access-control-request-method': 'POST',
      'access-control-request-headers': sdkHeaders,
    },
  });

const corsHeaders = ({ headers }: Response): string[] =>
  [...headers.keys()].filter((name) => name.startsWith('access-control-'));

test('a preflight from a listed origin needs no key', async (t) => {
  for (const from of [origin, 'http://localhost:5173']) {
    const response = await preflight(`${stack.url}/v1/chat/completions`, from);
    t.is(response.status, 204);
    t.is(response.headers.get('access-control-allow-origin'), from);
    t.is(response.headers.get('access-control-allow-headers'), sdkHeaders);
    const methods = response.headers.get('access-control-allow-methods')?.split(',') ?? [];
    t.deepEqual(methods, ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT']);
    t.true(Number(response.headers.get('access-control-max-age')) >= 600);
    t.regex(response.headers.get('vary') ?? '', /\bOrigin\b/);
    t.false(response.headers.has('access-control-allow-credentials'));
    t.truthy(response.headers.get('x-request-id'));
  }
});

test('other origins are not allowed, even if they are similar to a listed one', async (t) => {
  const otherOrigins = [
    'https://app.example.evil',
    'http://app.example',
    'https://app.example:8443',
    'null',
    '',
  ];
  for (const from of otherOrigins) {
    const response = await preflight(`${stack.url}/v1/chat/completions`, from);
    t.deepEqual(corsHeaders(response), [], from);
    t.is(response.headers.get('allow'), 'POST');
    const models = await fetch(`${stack.url}/v1/models`, { headers: { origin: from } });
    t.is(models.status, 200);
    t.deepEqual(corsHeaders(models), [], from);
    t.regex(models.headers.get('vary') ?? '', /\bOrigin\b/);
    await models.text();
  }
});

test('a page may read a response and the headers that clients need', async (t) => {
  const { apiKey } = await stack.createAccount();
  const response = await stack.post('/v1/chat/completions', apiKey, chat, { origin });
  t.is(response.status, 200);
  t.is(response.headers.get('access-control-allow-origin'), origin);
  const exposed = response.headers.get('access-control-expose-headers')?.split(',') ?? [];
  const expected = ['x-request-id', 'x-ratelimit-limit-requests', 'x-ratelimit-remaining-requests'];
  expected.push('x-ratelimit-reset-requests', 'retry-after', 'retry-after-ms', 'x-should-retry');
  expected.push('idempotent-replayed', 'x-budget-limit', 'x-budget-remaining', 'x-budget-reset');
  expected.push('x-ratelimit-limit-tokens', 'x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens');
  expected.push(
    'allow',
    'etag',
    'vary',
    'www-authenticate',
    'x-incomplete',
    'location',
    'preference-applied',
  );
  expected.push('accept-ranges', 'content-disposition', 'content-range', 'last-modified');
  t.deepEqual(exposed.toSorted(), expected.toSorted());
  t.false(response.headers.has('access-control-allow-credentials'));
});

test('a page may read a stream', async (t) => {
  const { apiKey } = await stack.createAccount();
  const response = await stack.post('/v1/chat/completions', apiKey, { ...chat, stream: true }, { origin });
  t.is(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  t.is(response.headers.get('access-control-allow-origin'), origin);
  t.true(response.headers.get('access-control-expose-headers')?.includes('x-request-id'));
  t.regex(await response.text(), /\[DONE\]\n\n$/);
});

test('a page may read a linked image', async (t) => {
  const { apiKey } = await stack.createAccount();
  const body = { model: 'demo-svg-image', prompt: 'a lighthouse', size: '256x256', response_format: 'url' };
  const generated = await stack.post('/v1/images/generations', apiKey, body, { origin });
  const { data } = (await generated.json()) as { data: { url: string }[] };
  const image = await fetch(data[0]!.url, { headers: { origin } });
  t.is(image.status, 200);
  t.is(image.headers.get('access-control-allow-origin'), origin);
  await image.arrayBuffer();
});

test('a page may read error responses', async (t) => {
  const { apiKey } = await stack.createAccount({ rpm: 1 });
  const post = (path: string, key: string | null, body: unknown): Promise<Response> =>
    stack.post(path, key, body, { origin });
  const path = '/v1/chat/completions';
  const cases: [number, () => Promise<Response>][] = [
    [401, () => post(path, null, chat)],
    [404, () => post('/v1//chat/completions', apiKey, chat)],
    [404, () => post('/v1/nothing', apiKey, chat)],
    [405, () => fetch(`${stack.url}${path}`, { method: 'DELETE', headers: { origin } })],
    [413, () => post('/v1/users/redeem', apiKey, { code: 'x'.repeat(70_000) })],
    [422, () => post(path, apiKey, { model: 'demo-echo' })],
    [200, () => post(path, apiKey, chat)],
    [429, () => post(path, apiKey, chat)],
  ];
  for (const [status, send] of cases) {
    const response = await send();
    t.is(response.status, status);
    t.is(response.headers.get('access-control-allow-origin'), origin, String(status));
    t.true(response.headers.get('access-control-expose-headers')?.includes('retry-after'), String(status));
    await response.text();
  }
});

testWithOwnStore('Redis')('a page may read that the service is unavailable', async (t) => {
  const ownStack = await useStack(t, { workers: [], env: { CORS_ORIGINS: origin } });
  const { apiKey } = await ownStack.createAccount();
  await ownStack.killRedis();
  const response = await ownStack.post('/v1/chat/completions', apiKey, chat, { origin });
  t.is(response.status, 503);
  t.is(response.headers.get('access-control-allow-origin'), origin);
});

test('a page may read the error for a connection over the limit, and the error is logged', async (t) => {
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    {},
    { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const api = await startApi({ ...stack.config, maxConnections: 1 }, stack.env, log);
  t.teardown(() => api.stop());
  const { apiKey } = await stack.createAccount();
  const busy = await useRaw(t, api.url);
  busy.socket.write(
    `POST /v1/embeddings HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${apiKey}\r\n` +
      'expect: 100-continue\r\ncontent-type: application/json\r\ncontent-length: 50000\r\n\r\n{',
  );
  await busy.until('100 Continue');
  const response = await fetch(`${api.url}/v1/models`, { headers: { origin } });
  t.is(response.status, 503);
  t.is(response.headers.get('access-control-allow-origin'), origin);
  t.is(response.headers.get('cache-control'), 'no-store');
  t.is(response.headers.get('connection'), 'close');
  t.truthy(response.headers.get('retry-after'));
  const { error } = (await response.json()) as { error: { code: string } };
  t.is(error.code, 'queue_full');
  const requestId = response.headers.get('x-request-id');
  const line = await waitFor('the log line of the rejected connection', () =>
    lines.find((each) => each['requestId'] === requestId && each['msg'] === 'request'),
  );
  t.like(line, { method: 'GET', path: '/v1/models', status: 503, code: 'queue_full' });
});

test('if the configured origin is *, any page may call the API, but without cookies', async (t) => {
  const url = await startApiWith(t, '*');
  const response = await preflight(`${url}/v1/chat/completions`, 'https://anything.example');
  t.is(response.status, 204);
  t.is(response.headers.get('access-control-allow-origin'), '*');
  t.is(response.headers.get('access-control-allow-headers'), sdkHeaders);
  const models = await fetch(`${url}/v1/models`, { headers: { origin: 'null' } });
  t.is(models.headers.get('access-control-allow-origin'), '*');
  t.false(models.headers.has('access-control-allow-credentials'));
  await models.text();
});

test('without configured origins, OPTIONS returns only the methods of a path', async (t) => {
  const url = await startApiWith(t, null);
  const allowed = { '/v1/chat/completions': 'POST', '/v1/models': 'HEAD, GET', '/v1/servers': 'HEAD, GET' };
  for (const [path, methods] of Object.entries(allowed)) {
    const response = await preflight(`${url}${path}`, origin);
    t.true(response.ok);
    t.is(response.headers.get('allow'), methods);
    t.is(await response.text(), '');
    t.deepEqual(corsHeaders(response), []);
  }
  const models = await fetch(`${url}/v1/models`, { headers: { origin } });
  t.deepEqual(corsHeaders(models), []);
  t.notRegex(models.headers.get('vary') ?? '', /origin/i);
  await models.text();
  t.is((await preflight(`${url}/v1/nothing`, origin)).status, 404);
});

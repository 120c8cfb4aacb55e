import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import {
  HttpConnections,
  type HttpConnectionsOptions,
} from '../../../../api/http/connections/http-connections.ts';
import { captureLog } from '../../../support/captured-log.ts';
import { connectionDefaults } from '../../../support/connection-defaults.ts';
import { openRaw, sendRaw } from '../../../support/raw-caller.ts';

/** Starts a server that passes every request to `handle`, and captures its log. */
async function startServer(
  t: ExecutionContext,
  handle: HttpConnectionsOptions['handle'],
  options: Partial<HttpConnectionsOptions> = {},
) {
  const { log, waitForLine } = captureLog();
  const connections = new HttpConnections({ ...connectionDefaults, handle, log, ...options });
  const url = await connections.listen('127.0.0.1', 0);
  t.teardown(() => connections.stop());
  return { url, waitForLine };
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: gateway\r\n\r\n`;

test('malformed requests get an access log line with the request id that was sent to the client', async (t) => {
  const { url, waitForLine } = await startServer(t, () => t.fail());
  const path = `/${'a'.repeat(1_000)}`;
  const query = '?key=mg-secret';
  for (const [bytes, method, status] of [
    ['garbage\r\n\r\n', null, 400],
    [`BREW /${query} HTTP/1.1\r\nhost: gateway\r\n\r\n`, 'BREW', 501],
    [`BREW ${path} HTTP/1.1\r\nhost: gateway\r\n\r\n`, 'BREW', 501],
    ['CONNECT example.com:443 HTTP/1.1\r\nhost: gateway\r\n\r\n', 'CONNECT', 501],
  ] as const) {
    const [response] = await sendRaw(url, bytes);
    const line = await waitForLine(({ requestId }) => requestId === response?.headers['x-request-id']);
    t.is(response?.status, status);
    t.like(line, { msg: 'request', method, status });
    t.truthy(line['reason']);
    t.true(String(line['path']).length <= 201);
    t.false(String(line['path']).includes('secret'));
    t.is(line['code'], status === 400 ? 'validation_failed' : 'method_not_allowed');
    t.is(typeof line['durationMs'], 'number');
  }
});

for (const last of ['garbage\r\n\r\n', 'CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n']) {
  test(`requests pipelined before ${last.slice(0, 7)} are answered first, in order`, async (t) => {
    let takeFirst = (_response: ServerResponse): void => undefined;
    const first = new Promise<ServerResponse>((resolve) => {
      takeFirst = resolve;
    });
    const { url } = await startServer(t, (request, response) => {
      if (request.url === '/first') takeFirst(response);
      else response.end(request.url);
    });
    const caller = await openRaw(url);
    // Node reports an error for bytes after the garbage too; the second error must have no effect.
    caller.socket.write(`${get('/first')}${get('/second')}${last}`);
    caller.socket.write('garbage\r\n\r\n');
    (await first).end('/first');
    const responses = await caller.responses();
    t.deepEqual(
      responses.map(({ status, body }) => [status, status === 200 ? body : '']),
      [
        [200, '/first'],
        [200, '/second'],
        [last.startsWith('CONNECT') ? 501 : 400, ''],
      ],
    );
  });
}

test('if a request turns out to be malformed after its response has started, the response is interrupted', async (t) => {
  const { url } = await startServer(t, (_request, response) => response.write('the beginning'));
  const caller = await openRaw(url);
  caller.socket.write('POST / HTTP/1.1\r\nhost: gateway\r\ntransfer-encoding: chunked\r\n\r\n');
  const partial = await caller.until('the beginning\r\n');
  caller.socket.write('no chunk\r\n');
  t.is(await caller.closed, partial);
});

test('a truncated body is a 400 if the caller can still receive a response', async (t) => {
  const { url } = await startServer(t, (request) => {
    request.on('error', () => undefined).resume();
  });
  const [response, ...more] = await sendRaw(
    url,
    'POST / HTTP/1.1\r\nhost: gateway\r\ncontent-length: 10\r\n\r\nhello',
    { halfClose: true },
  );
  t.is(response?.status, 400);
  t.regex(response!.body, /closed before the request was complete/);
  t.deepEqual(more, []);
});

test('a request that is not complete in time is a 408 that may be retried', async (t) => {
  const options = { headersTimeoutMs: 60, requestTimeoutMs: 60 };
  const { url } = await startServer(
    t,
    (request) => {
      request.on('error', () => undefined).resume();
    },
    options,
  );
  for (const part of [
    'GET / HTTP/1.1\r\n',
    'POST / HTTP/1.1\r\nhost: gateway\r\ncontent-length: 10\r\n\r\nhello',
  ]) {
    const [response, ...more] = await sendRaw(url, part);
    t.is(response?.status, 408, part);
    t.is((JSON.parse(response!.body) as { error: { code: string } }).error.code, 'deadline_exceeded');
    t.deepEqual(more, []);
  }
});

test('if the body is truncated, the handler is notified, and a response that it sends later is not appended to the 400', async (t) => {
  const closedRequests: Promise<unknown>[] = [];
  const { url } = await startServer(t, (request, response) => {
    request.on('error', () => undefined).resume();
    closedRequests.push(
      once(request, 'close').then(() => {
        response.end('too late');
      }),
    );
  });
  const head = 'POST / HTTP/1.1\r\nhost: gateway\r\n';
  for (const [bytes, halfClose] of [
    [`${head}content-length: 100\r\n\r\n0123456789`, true],
    [`${head}transfer-encoding: chunked\r\n\r\nZZZ\r\n`, false],
  ] as const) {
    const responses = await sendRaw(url, bytes, { halfClose });
    t.deepEqual(
      responses.map(({ status }) => status),
      [400],
    );
    await closedRequests.at(-1);
  }
  t.is(closedRequests.length, 2);
});

test('errors sent before a request is parsed carry CORS headers if the origin can be determined', async (t) => {
  const { url } = await startServer(t, () => t.fail(), {
    corsHeaders: (origin) => ({ 'access-control-allow-origin': origin }),
  });
  const head = 'host: gateway\r\norigin: https://app.example\r\n';
  for (const [bytes, origin] of [
    [`BREW / HTTP/1.1\r\n${head}\r\n`, 'https://app.example'],
    [`GET / HTTP/1.1\r\n${head}x: ${'x'.repeat(20_000)}\r\n\r\n`, 'https://app.example'],
    [`CONNECT a:1 HTTP/1.1\r\n${head}\r\n`, 'https://app.example'],
    ['garbage\r\n\r\n', ''],
  ] as const) {
    const [response] = await sendRaw(url, bytes);
    t.is(response?.headers['access-control-allow-origin'], origin, bytes.slice(0, 40));
  }
});

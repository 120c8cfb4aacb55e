import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import test from 'ava';
import { createHttpClient, type HttpResponse } from '../../../workers/upstreams/http-client.ts';
import { UpstreamError } from '../../../workers/upstreams/upstream.ts';

test('a body sent in pieces arrives with its full length, also on a reused connection', async (t) => {
  const received: unknown[] = [];
  const server = createServer((request, response) => {
    let length = 0;
    request.on('data', (chunk: Buffer) => (length += chunk.length));
    request.on('end', () => {
      received.push([request.headers['content-length'], request.headers['transfer-encoding'], length]);
      response.end('ok');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const client = createHttpClient({ baseUrl: `http://127.0.0.1:${port}`, connections: 1 });
  t.teardown(() => client.close());
  for (let times = 0; times < 2; times++) {
    const { signal } = new AbortController();
    const body = Readable.from(Array.from({ length: 100 }, () => Buffer.alloc(50_000)));
    const headers = { 'content-length': '5000000' };
    const httpResponse = await client.post({ path: '/', headers, body, signal });
    t.is((await httpResponse.readAll(10)).toString(), 'ok');
  }
  t.deepEqual(received, [
    ['5000000', undefined, 5_000_000],
    ['5000000', undefined, 5_000_000],
  ]);
});

test('a response that the server sends before it reads the body is received; a closed connection fails the call', async (t) => {
  let hangsUp = false;
  const server = createServer((request, response) => {
    if (hangsUp) request.socket.destroy();
    else response.writeHead(413, { connection: 'close' }).end('too large');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client = createHttpClient({ baseUrl: `http://127.0.0.1:${port}`, connections: 1 });
  t.teardown(async () => {
    server.closeAllConnections();
    server.close();
    await client.close();
  });
  const post = async (): Promise<HttpResponse> => {
    const body = Readable.from(Array.from({ length: 500 }, () => Buffer.alloc(50_000)));
    const headers = { 'content-length': '25000000' };
    return await client.post({ path: '/', headers, body, signal: new AbortController().signal });
  };
  const httpResponse = await post();
  t.is(httpResponse.status, 413);
  t.is((await httpResponse.readStart(100)).toString(), 'too large');
  hangsUp = true;
  const error = await t.throwsAsync(post(), { instanceOf: UpstreamError });
  t.is(error?.failure, 'unavailable');
});

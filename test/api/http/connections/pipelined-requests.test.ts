import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { createConnection, type Connection } from '../../../../api/http/connections/connection.ts';
import { PipelinedRequests } from '../../../../api/http/connections/pipelined-requests.ts';
import { useRaw } from '../../../support/raw-caller.ts';
import { waitFor } from '../../../support/wait-for.ts';

/** Memory reserved for a request without a body: the length of its head, which is the target and one header. */
const requestBytes = 2_048 + '/'.length + 'hosta'.length;
const get = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';

/** A server that queues pipelined requests, and the responses that have started. */
async function start(t: ExecutionContext, capacity: number) {
  const pipelined = new PipelinedRequests(capacity);
  const started: ServerResponse[] = [];
  const connections = new WeakMap<Socket, Connection>();
  const server = createServer((request, response) => {
    const connection = connections.get(request.socket)!;
    if (response.socket !== null) started.push(response);
    else pipelined.wait(connection, request, response, () => started.push(response));
  }).listen(0, '127.0.0.1');
  server.on('connection', (socket) => {
    connections.set(socket, createConnection(socket, socket.remoteAddress!));
  });
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { pipelined, started, url };
}

test('if an address exceeds its share of memory for pipelined requests, its connection is closed, which frees memory for others', async (t) => {
  const { pipelined, started, url } = await start(t, 8 * requestBytes);
  const [first, heavyClient] = [await useRaw(t, url), await useRaw(t, url)];
  first.socket.write(get.repeat(4));
  await waitFor('three pipelined', () => pipelined.held === 3 * requestBytes);
  heavyClient.socket.write(get.repeat(20));
  await heavyClient.closed;
  await waitFor('three pipelined', () => pipelined.held === 3 * requestBytes);
  const third = await useRaw(t, url, { from: '127.0.0.3' });
  third.socket.write(get.repeat(6));
  await waitFor('eight pipelined', () => pipelined.held === 8 * requestBytes);
  const another = await useRaw(t, url, { from: '127.0.0.3' });
  another.socket.write(get.repeat(2));
  await another.closed;
  third.socket.destroy();
  first.socket.destroy();
  await waitFor('none pipelined', () => pipelined.held === 0);
  const modest = await useRaw(t, url, { from: '127.0.0.2' });
  modest.socket.write(get.repeat(4));
  await waitFor('three pipelined', () => pipelined.held === 3 * requestBytes);
  modest.socket.destroy();
  await waitFor('none pipelined', () => pipelined.held === 0);
  t.is(started.length, 5);
});

test('memory for the body of a pipelined request is reserved according to its Content-Length', async (t) => {
  const bytes = 15_000;
  const perRequest = requestBytes + `content-length${bytes}`.length + bytes;
  const { pipelined, started, url } = await start(t, 16 * perRequest);
  const body = 'x'.repeat(bytes);
  const post = `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${bytes}\r\n\r\n${body}`;
  const first = await useRaw(t, url);
  first.socket.write(get + post.repeat(6));
  await waitFor('six pipelined', () => pipelined.held === 6 * perRequest);
  const heavyClient = await useRaw(t, url);
  heavyClient.socket.write(get + post.repeat(6));
  await heavyClient.closed;
  await waitFor('six pipelined', () => pipelined.held === 6 * perRequest);
  // Without a Content-Length, memory is reserved for the maximum part of a body that is read ahead: 64 KB.
  const chunked = requestBytes + 'transfer-encodingchunked'.length + 65_536;
  const other = await useRaw(t, url, { from: '127.0.0.2' });
  other.socket.write(`${get}POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n`);
  await waitFor('another pipelined request', () => pipelined.held === 6 * perRequest + chunked);
  t.is(started.length, 3);
});

test('memory for the head of a pipelined request is reserved according to its length, so fewer requests with long heads are read ahead', async (t) => {
  const value = 'x'.repeat(7_000);
  const long = `GET /${value} HTTP/1.1\r\nhost: a\r\nlong: ${value}\r\n\r\n`;
  const perRequest = requestBytes + 'long'.length + 2 * value.length;
  const { pipelined, started, url } = await start(t, 1_000 * perRequest);
  const caller = await useRaw(t, url);
  caller.socket.write(get);
  await waitFor('the first request to start', () => started.length === 1);
  caller.socket.write(long.repeat(64));
  // Reading stops at 128 KB, plus whatever the last read returned beyond that.
  await waitFor('pipelined requests to be read ahead', () => pipelined.held >= 128 * 1024);
  const other = await useRaw(t, url, { from: '127.0.0.2' });
  other.socket.write(get);
  await waitFor('the request of another caller to start', () => started.length === 2);
  t.is(pipelined.held % perRequest, 0);
  t.true(pipelined.held < 128 * 1024 + 2 * 64 * 1024, `${pipelined.held}`);
});

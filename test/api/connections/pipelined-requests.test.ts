import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import test from 'ava';
import type { Connection } from '../../../api/connections/connection.ts';
import { PipelinedRequests } from '../../../api/connections/pipelined-requests.ts';
import { useRaw } from '../../support/raw-caller.ts';
import { waitFor } from '../../support/wait-for.ts';

const get = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';

test('an address that has its share of requests in line is closed on, and what its connections held is there for others', async (t) => {
  const pipelined = new PipelinedRequests(8);
  const begun: ServerResponse[] = [];
  const connections = new WeakMap<Socket, Connection>();
  const server = createServer(({ socket }, response) => {
    if (response.socket !== null) begun.push(response);
    else pipelined.wait(connections.get(socket)!, response, () => begun.push(response));
  }).listen(0, '127.0.0.1');
  server.on('connection', (socket) => {
    connections.set(socket, { socket, network: socket.remoteAddress!, response: null });
  });
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [first, greedy] = [await useRaw(t, url), await useRaw(t, url)];
  first.socket.write(get.repeat(4));
  await waitFor('three in line', () => pipelined.size === 3);
  greedy.socket.write(get.repeat(20));
  await greedy.closed;
  await waitFor('three in line', () => pipelined.size === 3);
  const third = await useRaw(t, url, { from: '127.0.0.3' });
  third.socket.write(get.repeat(6));
  await waitFor('eight in line', () => pipelined.size === 8);
  const another = await useRaw(t, url, { from: '127.0.0.3' });
  another.socket.write(get.repeat(2));
  await another.closed;
  third.socket.destroy();
  first.socket.destroy();
  await waitFor('none in line', () => pipelined.size === 0);
  const modest = await useRaw(t, url, { from: '127.0.0.2' });
  modest.socket.write(get.repeat(4));
  await waitFor('three in line', () => pipelined.size === 3);
  modest.socket.destroy();
  await waitFor('none in line', () => pipelined.size === 0);
  t.is(begun.length, 5);
});

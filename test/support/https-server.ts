import type { ExecutionContext } from 'ava';
import { once } from 'node:events';
import type { IncomingMessage, RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { testOnlyCertificate, testOnlyKeyThatIsNoSecret } from './test-only-certificate.ts';

export interface HttpsServer {
  readonly port: number;
  /** TCP connections so far, whatever became of them. */
  readonly connections: number;
  /** Requests so far, oldest first. */
  readonly requests: readonly IncomingMessage[];
  /** Resolves when all connections so far are closed. */
  whenDisconnected(): Promise<void>;
}

/** An HTTPS server on 127.0.0.1 for one test, for `pictures.test` and the names below it. */
export async function useHttpsServer(t: ExecutionContext, answer: RequestListener): Promise<HttpsServer> {
  const sockets: Socket[] = [];
  const requests: IncomingMessage[] = [];
  const server = createServer(
    { cert: testOnlyCertificate, key: testOnlyKeyThatIsNoSecret },
    (request, response) => {
      requests.push(request);
      answer(request, response);
    },
  );
  server.on('connection', (socket: Socket) => sockets.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    get connections() {
      return sockets.length;
    },
    async whenDisconnected() {
      await Promise.all(sockets.filter((socket) => !socket.closed).map((socket) => once(socket, 'close')));
    },
  };
}

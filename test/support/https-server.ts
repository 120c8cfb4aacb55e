import type { ExecutionContext } from 'ava';
import { once } from 'node:events';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { testOnlyCertificate, testOnlyKeyThatIsNoSecret } from './test-only-certificate.ts';

export interface LoopbackServer {
  readonly port: number;
  /** TCP connections so far, open or closed. */
  readonly connections: number;
  /** Requests so far, oldest first. */
  readonly requests: readonly IncomingMessage[];
  /** Resolves when all connections made so far are closed. */
  whenDisconnected(): Promise<void>;
}

/** An HTTPS server on 127.0.0.1 for one test, with a certificate for `pictures.test` and its subdomains. */
export async function useHttpsServer(
  t: ExecutionContext,
  listener: RequestListener,
): Promise<LoopbackServer> {
  const options = { cert: testOnlyCertificate, key: testOnlyKeyThatIsNoSecret };
  return await useServer(t, createHttpsServer(options), listener);
}

/** Like `useHttpsServer`, without TLS. */
export async function useHttpServer(t: ExecutionContext, listener: RequestListener): Promise<LoopbackServer> {
  return await useServer(t, createHttpServer(), listener);
}

async function useServer(
  t: ExecutionContext,
  server: Server,
  listener: RequestListener,
): Promise<LoopbackServer> {
  const sockets: Socket[] = [];
  const requests: IncomingMessage[] = [];
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    requests.push(request);
    listener(request, response);
  });
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

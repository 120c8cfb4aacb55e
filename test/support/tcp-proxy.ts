import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A server seen through a network that can hold its answers back. */
export interface TcpProxy {
  readonly port: number;
  /** Of the requests that went through, or wait to be answered, how often they hold this text. */
  countSent(text: string): number;
  /** From now on no answer arrives: of all connections, or of those that ask for something with this text. */
  hold(text?: string): void;
  /** What was held back arrives, and so does what is said from now on. */
  release(): void;
  close(): Promise<void>;
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const sent: Buffer[] = [];
  const held: (() => void)[] = [];
  const heldConnections = new Set<Socket>();
  let heldText: string | null = null;
  const server = createServer((client) => {
    const target = connect(targetPort, '127.0.0.1');
    for (const socket of [client, target]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        sockets.delete(socket);
        client.destroy();
        target.destroy();
      });
    }
    client.on('data', (chunk) => {
      sent.push(chunk);
      if (heldText !== null && chunk.includes(heldText)) heldConnections.add(client);
      target.write(chunk);
    });
    target.on('data', (chunk) => {
      const pass = (): void => void client.write(chunk);
      if (heldText === '' || heldConnections.has(client)) held.push(pass);
      else pass();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    countSent: (text) => Buffer.concat(sent).toString('latin1').split(text).length - 1,
    hold(text = '') {
      heldText = text;
    },
    release() {
      heldText = null;
      heldConnections.clear();
      for (const pass of held.splice(0)) pass();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

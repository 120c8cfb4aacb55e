import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** A server seen through a network that can hold back, delay and cut what is said. */
export interface TcpProxy {
  readonly port: number;
  /** Of the requests that went through, or wait to be answered, how often they hold this text. */
  countSent(text: string): number;
  /** From now on no answer arrives: of all connections, or of those that ask for something with this text. */
  hold(text?: string): void;
  /** From now on connections are accepted and nothing passes in either direction, as with a server that stands still. */
  hang(): void;
  /** From now on every answer arrives so much later. */
  delay(ms: number): void;
  /** All connections break now, and new ones as soon as they are made. */
  cut(): void;
  /** The server loses its power and is back at once: the connections that there are fall silent for ever, new ones are served. */
  loseConnections(): void;
  /** Ends all of that. What was held back arrives, and so does what is said from now on. */
  release(): void;
  close(): Promise<void>;
}

export async function startTcpProxy(targetPort: number, targetHost = '127.0.0.1'): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const lost = new Set<Socket>();
  const targets = new Map<Socket, Socket>();
  const sent: Buffer[] = [];
  const held: (() => void)[] = [];
  const heldConnections = new Set<Socket>();
  let heldText: string | null = null;
  let isHanging = false;
  let isCut = false;
  let delayMs = 0;
  const passOrHold = (isHeld: boolean, pass: () => void): void => {
    if (isHeld) held.push(pass);
    else pass();
  };
  const server = createServer((client) => {
    if (isCut) {
      client.resetAndDestroy();
      return;
    }
    const target = connect(targetPort, targetHost);
    targets.set(client, target);
    client.once('close', () => targets.delete(client));
    for (const socket of [client, target]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        sockets.delete(socket);
        if (socket === target && lost.has(client)) return;
        lost.delete(client);
        client.destroy();
        target.destroy();
      });
    }
    client.on('data', (chunk) => {
      sent.push(chunk);
      if (heldText !== null && chunk.includes(heldText)) heldConnections.add(client);
      if (!lost.has(client)) passOrHold(isHanging, () => void target.write(chunk));
    });
    // What is delayed keeps its order, also past the end of the delay.
    let answers = Promise.resolve();
    const passAnswer = (chunk: Buffer): void =>
      passOrHold(isHanging || heldText === '' || heldConnections.has(client), () => void client.write(chunk));
    let isDelayed = false;
    target.on('data', (chunk) => {
      if (delayMs === 0 && !isDelayed) {
        passAnswer(chunk);
        return;
      }
      isDelayed = true;
      const arrives = pause(delayMs, undefined, { ref: false });
      const answer = answers.then(async () => {
        await arrives;
        passAnswer(chunk);
        if (answers === answer) isDelayed = false;
      });
      answers = answer;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const breakAll = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    countSent: (text) => Buffer.concat(sent).toString('latin1').split(text).length - 1,
    hold(text = '') {
      heldText = text;
    },
    hang() {
      isHanging = true;
    },
    delay(ms) {
      delayMs = ms;
    },
    cut() {
      isCut = true;
      breakAll();
    },
    loseConnections() {
      for (const [client, target] of targets) {
        lost.add(client);
        target.destroy();
      }
    },
    release() {
      heldText = null;
      isHanging = false;
      isCut = false;
      delayMs = 0;
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

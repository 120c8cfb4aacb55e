import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** A proxy in front of a server that can hold back, delay and interrupt the traffic. */
export interface TcpProxy {
  readonly port: number;
  /** The number of occurrences of this text in all requests so far, including unanswered ones. */
  countSent(text: string): number;
  /** The number of connections that were reset as soon as they were accepted. */
  readonly refused: number;
  /** From now on replies are held back: on all connections, or on those whose requests contain this text. */
  hold(text?: string): void;
  /** From now on connections are accepted but nothing passes in either direction, as with a frozen server. */
  hang(): void;
  /** From now on every reply is delayed by this much. */
  delay(ms: number): void;
  /** Resets all connections, and new ones as soon as they are accepted. */
  cut(): void;
  /** Simulates a power cycle of the server: existing connections get no more data, but new connections work. */
  loseConnections(): void;
  /** Ends all of the above, except lost connections. Data held back is delivered. */
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
  let refused = 0;
  let delayMs = 0;
  const passOrHold = (isHeld: boolean, pass: () => void): void => {
    if (isHeld) held.push(pass);
    else pass();
  };
  const server = createServer((client) => {
    if (isCut) {
      refused += 1;
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
    // Replies stay in order: while delayed ones are pending, later ones wait, even if `delay` has been reset.
    let replies = Promise.resolve();
    const passReply = (chunk: Buffer): void =>
      passOrHold(isHanging || heldText === '' || heldConnections.has(client), () => void client.write(chunk));
    let isDelayed = false;
    target.on('data', (chunk) => {
      if (delayMs === 0 && !isDelayed) {
        passReply(chunk);
        return;
      }
      isDelayed = true;
      const arrives = pause(delayMs, undefined, { ref: false });
      const reply = replies.then(async () => {
        await arrives;
        passReply(chunk);
        if (replies === reply) isDelayed = false;
      });
      replies = reply;
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
    get refused() {
      return refused;
    },
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

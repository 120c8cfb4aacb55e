import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Connections to a server on loopback that nobody takes care of: their errors are expected. */
export async function openSockets(port: number, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
  await Promise.all(
    sockets.map(async (socket) => {
      socket.on('error', () => undefined); // `close` follows.
      await Promise.race([waitForSocket(socket, 'connect'), waitForSocket(socket, 'close')]);
    }),
  );
  return sockets;
}

export function closeSockets(sockets: readonly Socket[]): void {
  for (const socket of sockets) socket.destroy();
}

/** Reads whatever comes, and resolves to how many of them the server has closed, at the latest after `timeoutMs`. */
export async function countClosed(sockets: readonly Socket[], timeoutMs = 20_000): Promise<number> {
  const deadline = delay(timeoutMs, undefined, { ref: false });
  const ends = sockets.map(async (socket) => {
    socket.resume();
    if (!socket.closed) await waitForSocket(socket, 'close');
  });
  await Promise.race([Promise.all(ends), deadline]);
  return sockets.filter((socket) => socket.closed).length;
}

/**
 * Sends bytes and never reads an answer. Resolves when all are taken, when the connection ends, or when the server has
 * taken nothing for a while.
 */
export async function sendUnread(socket: Socket, bytes: Buffer, patienceMs = 3_000): Promise<void> {
  socket.pause();
  const pieceBytes = 65_536;
  for (let at = 0; at < bytes.length && !socket.destroyed; at += pieceBytes) {
    if (socket.write(bytes.subarray(at, at + pieceBytes))) continue;
    const taken = waitForSocket(socket, 'drain').then(() => true);
    const closed = waitForSocket(socket, 'close').then(() => false);
    if (!(await Promise.race([taken, closed, delay(patienceMs, false, { ref: false })]))) return;
  }
}

/** Unlike `once` of Node it does not reject at an error. */
export function waitForSocket(socket: Socket, event: 'connect' | 'drain' | 'close'): Promise<void> {
  return new Promise((resolve) => socket.once(event, () => resolve()));
}

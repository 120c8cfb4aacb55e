import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { openRaw } from './raw-caller.ts';

/** Opens connections to the server of a URL. They read nothing until they are resumed. */
export async function openSockets(url: string, count: number): Promise<Socket[]> {
  const open = Array.from({ length: count }, () => openRaw(url, { isPaused: true }));
  return (await Promise.all(open)).map(({ socket }) => socket);
}

export function closeSockets(sockets: readonly Socket[]): void {
  for (const socket of sockets) socket.destroy();
}

/** Reads until the server has closed all sockets, or until the timeout. @returns the number of closed sockets */
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
 * Sends bytes without reading the response. Resolves when all bytes are accepted, when the connection is closed, or
 * when the server has accepted nothing for `stallTimeoutMs`.
 */
export async function sendUnread(socket: Socket, bytes: Buffer, stallTimeoutMs = 3_000): Promise<void> {
  socket.pause();
  const pieceBytes = 65_536;
  for (let at = 0; at < bytes.length && !socket.destroyed; at += pieceBytes) {
    if (socket.write(bytes.subarray(at, at + pieceBytes))) continue;
    const drained = waitForSocket(socket, 'drain').then(() => true);
    const closed = waitForSocket(socket, 'close').then(() => false);
    if (!(await Promise.race([drained, closed, delay(stallTimeoutMs, false, { ref: false })]))) return;
  }
}

/** Unlike Node's `once`, does not reject if the socket emits an error. */
function waitForSocket(socket: Socket, event: 'drain' | 'close'): Promise<void> {
  return new Promise((resolve) => socket.once(event, () => resolve()));
}

/**
 * Sends a byte at intervals on some of the connections while `whileHeld` runs, and then closes all of them.
 * @returns the number of connections that were still open at the end
 */
export async function holdDripping(
  sockets: readonly Socket[],
  { byte, isDripping }: { byte: string; isDripping: (index: number) => boolean },
  whileHeld: () => Promise<void>,
): Promise<number> {
  const dripping = sockets.filter((_, i) => isDripping(i));
  const drip = setInterval(() => {
    for (const socket of dripping) if (!socket.destroyed) socket.write(byte);
  }, 20);
  try {
    await whileHeld();
    return sockets.filter((socket) => !socket.destroyed).length;
  } finally {
    clearInterval(drip);
    closeSockets(sockets);
  }
}

import type { Socket } from 'node:net';

const cut = new WeakSet<Socket>();

/**
 * Resets a connection whose client does not read. The operating system then discards the bytes it still holds for that
 * client; after a normal close it would keep them.
 */
export function resetUnread(socket: Socket): void {
  cut.add(socket);
  socket.resetAndDestroy();
}

/** Whether a connection was reset because its client did not read, instead of closed by the client. */
export function wasResetUnread(socket: Socket): boolean {
  return cut.has(socket);
}

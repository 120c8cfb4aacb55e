import type { Socket } from 'node:net';

const cut = new WeakSet<Socket>();

/**
 * Resets a connection whose client does not read, which also discards what the system still holds for it. A normal close
 * would leave that waiting for the client.
 */
export function cutUnread(socket: Socket): void {
  cut.add(socket);
  socket.resetAndDestroy();
}

/** Whether a connection was reset because its client did not read, instead of closed by the client. */
export function wasCutUnread(socket: Socket): boolean {
  return cut.has(socket);
}

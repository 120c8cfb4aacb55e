import type { Socket } from 'node:net';

const cut = new WeakSet<Socket>();

/**
 * Ends a connection whose caller does not read. What the system still holds for it goes with it: closing it the usual way
 * would leave that to wait for the caller.
 */
export function cutUnread(socket: Socket): void {
  cut.add(socket);
  socket.resetAndDestroy();
}

/** Whether a connection was ended because its caller did not read, as against having left. */
export function wasCutUnread(socket: Socket): boolean {
  return cut.has(socket);
}

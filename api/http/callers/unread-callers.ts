import type { Socket } from 'node:net';

const resetSockets = new WeakSet<Socket>();

/**
 * Resets a connection whose client does not read. The operating system then discards the bytes that it still buffers
 * for the client. After a normal close, it would continue to buffer them.
 */
export function resetForUnreadResponse(socket: Socket): void {
  resetSockets.add(socket);
  socket.resetAndDestroy();
}

/** Whether the gateway reset a connection because its client did not read. */
export function wasResetForUnreadResponse(socket: Socket): boolean {
  return resetSockets.has(socket);
}

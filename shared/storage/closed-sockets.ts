import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

const ports = new Set<number>();

/**
 * Ends the wait for `drain` of whoever wrote to a socket that was closed already. MongoDB's driver (7.9 and before)
 * waits for it without an end: for a moment after the server's end of the connection Node has destroyed the socket and
 * not yet said `close`, and what is written then is refused without an `error`. A command waits for ever, and where it
 * is the driver's look at the server, the process never finds the server again.
 * @param port of servers whose sockets are looked after, for as long as the process lives
 */
export function endWaitsOfClosedSockets(port: number): void {
  if (ports.size === 0) subscribe('net.client.socket', watch);
  ports.add(port);
}

function watch(message: unknown): void {
  const { socket } = message as { socket: Socket };
  socket.once('connect', () => {
    if (ports.has(socket.remotePort ?? 0)) socket.once('close', () => socket.emit('drain'));
  });
}

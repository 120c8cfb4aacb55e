import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

const ports = new Set<number>();

/**
 * Ends a writer's wait for `drain` on a socket that is already closed. MongoDB's driver (7.9 and before) waits for
 * `drain` without a timeout. For a moment after the server closes the connection, Node has destroyed the socket but not
 * yet emitted `close`, and rejects writes without an `error`. A command then waits forever. If that command is the
 * driver's server check, the process never finds the server again.
 * @param port sockets to this port are watched for as long as the process lives
 */
export function endClosedSocketWaits(port: number): void {
  if (ports.size === 0) subscribe('net.client.socket', watch);
  ports.add(port);
}

function watch(message: unknown): void {
  const { socket } = message as { socket: Socket };
  socket.once('connect', () => {
    if (ports.has(socket.remotePort ?? 0)) socket.once('close', () => socket.emit('drain'));
  });
}

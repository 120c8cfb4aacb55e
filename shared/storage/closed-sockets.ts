import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

const channel = 'net.client.socket';

/**
 * Ends the wait for `drain` of whoever wrote to a socket that was closed already. MongoDB's driver (7.9 and before)
 * waits for it without an end: for a moment after the server's end of the connection Node has destroyed the socket and
 * not yet said `close`, and what is written then is refused without an `error`. A command waits for ever, and where it
 * is the driver's look at the server, the process never finds the server again.
 * @param isOurs by the port of the other end
 * @returns what stops it
 */
export function endWaitsOfClosedSockets(isOurs: (port: number) => boolean): () => void {
  const watch = (message: unknown): void => {
    const { socket } = message as { socket: Socket };
    socket.once('connect', () => {
      if (isOurs(socket.remotePort ?? 0)) socket.once('close', () => socket.emit('drain'));
    });
  };
  subscribe(channel, watch);
  return () => {
    unsubscribe(channel, watch);
  };
}

import type { Connection } from './connection.ts';

/** A caller that is sending a body rarely pauses for longer, unless its connection broke. */
const silentMs = 1_000;

/**
 * Whether we are waiting for the body of a connection's request and nothing has arrived for a second. That takes two looks:
 * a caller that was told to go on only now has had no time to send anything.
 */
export function isSilent(connection: Connection, nowMs: number): boolean {
  const { request, socket, heard } = connection;
  // While we do not read, for instance until there is memory for the body, the caller is not at fault.
  if (request === null || request.complete || request.readableFlowing !== true) {
    connection.heard = null;
    return false;
  }
  if (heard?.bytes === socket.bytesRead) return nowMs - heard.atMs >= silentMs;
  connection.heard = { bytes: socket.bytesRead, atMs: nowMs };
  return false;
}

import type { Connection } from './connection.ts';

/** Who sends a body pauses for less, but where the connection broke. */
const silentMs = 1_000;

/**
 * Whether the body of a connection's request is waited for, and nothing has come of it for a second. That takes two looks:
 * who was told to go on just now has had no time to.
 */
export function isSilent(connection: Connection, nowMs: number): boolean {
  const { request, socket, heard } = connection;
  // Where nobody reads, as where there is no memory for it yet, its caller is not at fault.
  if (request === null || request.complete || request.readableFlowing !== true) {
    connection.heard = null;
    return false;
  }
  if (heard?.bytes === socket.bytesRead) return nowMs - heard.atMs >= silentMs;
  connection.heard = { bytes: socket.bytesRead, atMs: nowMs };
  return false;
}

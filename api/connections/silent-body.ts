import type { Connection } from './connection.ts';

/** A client rarely pauses longer while it sends a body, unless its connection broke. */
const silentMs = 1_000;

/**
 * Whether a request's body is awaited and nothing has arrived for a second. Takes two checks: a client that has only just
 * been told to continue had no time to send anything.
 */
export function isSilent(connection: Connection, nowMs: number): boolean {
  const { request, socket, heard } = connection;
  // While we do not read, for instance until there is memory for the body, the client is not at fault.
  if (request === null || request.complete || request.readableFlowing !== true) {
    connection.heard = null;
    return false;
  }
  if (heard?.bytes === socket.bytesRead) return nowMs - heard.atMs >= silentMs;
  connection.heard = { bytes: socket.bytesRead, atMs: nowMs };
  return false;
}

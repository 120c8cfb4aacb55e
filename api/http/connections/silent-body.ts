import type { Connection } from './connection.ts';

/** A client rarely pauses longer than this while it sends a body, unless its connection is broken. */
const silentMs = 1_000;

/**
 * Whether more of a request's body is expected but nothing has arrived for a second. Needs two checks, because a client
 * that has just received a `100 Continue` has had no time to send anything.
 */
export function isSilent(connection: Connection, nowMs: number): boolean {
  const { request, socket, lastReceived } = connection;
  // While reading is paused, for instance until there is memory for the body, the client is not silent.
  if (request === null || request.complete || request.readableFlowing !== true) {
    connection.lastReceived = null;
    return false;
  }
  if (lastReceived?.bytes === socket.bytesRead) return nowMs - lastReceived.atMs >= silentMs;
  connection.lastReceived = { bytes: socket.bytesRead, atMs: nowMs };
  return false;
}

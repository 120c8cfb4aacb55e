import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** What Node's http server has and does not describe. Nothing else in this folder looks at it. */

/** Without it, the end of what a caller sends ends its answer. */
export function allowHalfOpen(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true });
}

/** Keeps the connection open behind a response that says it is the last: who still sends would lose the answer. */
export function keepOpenAfter(response: ServerResponse): void {
  Object.assign(response, { _last: false });
}

/** Lets so much of a body be read before anybody asks for it, where Node would stop reading the connection sooner. */
export function readAhead(request: IncomingMessage, bytes: number): void {
  const { _readableState: state } = request as unknown as { _readableState?: { highWaterMark: number } };
  // At the mark itself Node stops.
  if (state !== undefined) state.highWaterMark = bytes + 1;
}

/**
 * What the system has taken of all that was written. Node counts the whole of a write as waiting until its last byte has
 * left; its own idle timeout looks at this number for the same reason, but takes bytes that come in for progress.
 */
export function readWritten(socket: Socket): { taken: number; isWaiting: boolean } {
  const { _handle: handle } = socket as unknown as {
    _handle?: { bytesWritten?: number; writeQueueSize?: number } | null;
  };
  const queued = handle?.writeQueueSize ?? 0;
  return { taken: (handle?.bytesWritten ?? 0) - queued, isWaiting: queued > 0 || socket.writableLength > 0 };
}

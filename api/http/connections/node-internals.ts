import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Undocumented internals of Node's HTTP server. Nothing else in this folder depends on them. */

/**
 * Allows half-open connections. Otherwise, a client that closes its side after the request would not get its response.
 */
export function allowHalfOpen(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true });
}

/**
 * Keeps the connection open after a response with `connection: close`. Otherwise, a client that is still sending would
 * lose the response.
 */
export function keepOpenAfter(response: ServerResponse): void {
  Object.assign(response, { _last: false });
}

/** Lets Node buffer this many bytes of a body before it pauses the connection. Its default limit is lower. */
export function readAhead(request: IncomingMessage, bytes: number): void {
  const { _readableState: state } = request as unknown as { _readableState?: { highWaterMark: number } };
  // Node already pauses when the mark is reached, not only beyond it.
  if (state !== undefined) state.highWaterMark = bytes + 1;
}

/**
 * Reads how many of the written bytes the operating system has accepted. Node's public properties report a whole write
 * as pending until its last byte is sent. Node's idle timeout also uses this number, but treats incoming bytes as
 * progress too.
 */
export function readWritten(socket: Socket): { accepted: number; isWaiting: boolean } {
  const { _handle: handle } = socket as unknown as {
    _handle?: { bytesWritten?: number; writeQueueSize?: number } | null;
  };
  const queued = handle?.writeQueueSize ?? 0;
  return {
    accepted: (handle?.bytesWritten ?? 0) - queued,
    isWaiting: queued > 0 || socket.writableLength > 0,
  };
}

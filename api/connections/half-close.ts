import type { ServerResponse } from 'node:http';
import type { Connection } from './connection.ts';

/** When to probe a client. By the last time, a disconnected client has rejected a write. */
const probesAfterMs = [0, 5, 50, 300, 1_500];

/**
 * Serves clients that close their side after the request, and detects which of them have disconnected. Both send a FIN,
 * but only a disconnected client rejects further data. So this makes a few small writes that a listening client
 * ignores: an interim response, or a comment in an event stream. A rejection shows at the next write. HTTP/1.0 has no
 * interim responses, so an HTTP/1.0 client counts as disconnected if the response has not started by the last probe.
 */
export function serveHalfClosed(connection: Connection): void {
  connection.socket.once('end', () => probe(connection));
}

function probe(connection: Connection): void {
  const { socket } = connection;
  const startedMs = performance.now();
  let sent = 0;
  let timer: NodeJS.Timeout | undefined;
  const next = (): void => {
    const { response } = connection;
    if (socket.destroyed || response === null) return;
    sent += 1;
    const isLast = sent === probesAfterMs.length;
    if (!write(response) && isLast) socket.destroy();
    if (isLast) return;
    timer = setTimeout(next, probesAfterMs[sent]! - (performance.now() - startedMs));
  };
  socket.once('close', () => clearTimeout(timer));
  next();
}

/** @returns false if nothing can be written and no response has started */
function write(response: ServerResponse): boolean {
  if (!response.headersSent) {
    if (response.req.httpVersionMajor === 1 && response.req.httpVersionMinor === 0) return false;
    response.writeContinue();
    return true;
  }
  const type = String(response.getHeader('content-type') ?? '');
  // Events are written whole, so the comment falls between two of them. Other responses are being written anyway, so
  // they need no probe.
  if (type.startsWith('text/event-stream') && !response.writableEnded) response.write(':\n\n');
  return true;
}

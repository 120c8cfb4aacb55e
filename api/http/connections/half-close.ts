// decision 0040
import type { ServerResponse } from 'node:http';
import { probeCaller } from '../callers/probe-callers.ts';
import type { Connection } from './connection.ts';

/** When to probe a client after its FIN (ms). By the last probe, a disconnected client has rejected a write. */
const probesAfterMs = [0, 5, 50, 300, 1_500];

/**
 * Serves clients that close their side of the connection after the request, and detects which of them have
 * disconnected. Both kinds send a FIN, but only a disconnected client rejects further data. So this sends a few small
 * probes that a listening client ignores: an interim response, or a comment in an event stream. A client that rejects a
 * probe makes the next write fail. HTTP/1.0 has no interim responses, so an HTTP/1.0 client is considered disconnected
 * if the response has not started by the last probe.
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
  // Only event streams and texts that are read from a store can be silent once they have started.
  probeCaller(response);
  return true;
}

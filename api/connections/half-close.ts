import type { ServerResponse } from 'node:http';
import type { Connection } from './connection.ts';

/** By the last of these times, a caller that has gone has refused something. */
const probesAfterMs = [0, 5, 50, 300, 1_500];

/**
 * Answers a caller that closes its side once it has asked, and finds out whether it has gone: both send a FIN, but only
 * one that has gone refuses what is written to it. So a little is written a few times, which a caller that listens
 * ignores: an interim response, or a comment of an event stream. A refusal shows at the next write.
 * With HTTP/1.0, which has no interim responses, a caller counts as gone when the answer has not begun by the last time.
 */
export function answerHalfClosed(connection: Connection): void {
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

/** @returns false where there is nothing that could be written, and no answer either */
function write(response: ServerResponse): boolean {
  if (!response.headersSent) {
    if (response.req.httpVersionMajor === 1 && response.req.httpVersionMinor === 0) return false;
    response.writeContinue();
    return true;
  }
  const type = String(response.getHeader('content-type') ?? '');
  // Whole events are written at once, so a comment stands between two of them. Other answers are on their way by themselves.
  if (type.startsWith('text/event-stream') && !response.writableEnded) response.write(':\n\n');
  return true;
}

import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** After so long a caller who has gone has had time to say so. */
export const defaultProbesAfterMs: readonly number[] = [0, 5, 50, 300, 1_500];

type HttpSocket = Socket & { readonly _httpMessage?: ServerResponse | null };

/**
 * Answers callers who close their side once they have asked, and finds out those who have gone: both send a FIN, but
 * only one who has gone refuses what is written to him. So a little is written a few times, which a caller who listens
 * passes over: an interim response, or a comment of an event stream. A refusal shows at the next write.
 * With HTTP/1.0, which has no interim responses, a caller counts as gone when the answer has not begun by the last time.
 */
export function answerHalfClosed(server: Server, probesAfterMs = defaultProbesAfterMs): void {
  // Node does not describe it; without it, the end of what a caller sends ends its answer.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('connection', (socket: HttpSocket) => {
    socket.once('end', () => {
      if (!socket.destroyed && socket._httpMessage) probe(socket, probesAfterMs);
    });
  });
}

function probe(socket: HttpSocket, probesAfterMs: readonly number[]): void {
  const startedMs = performance.now();
  let sent = 0;
  let timer: NodeJS.Timeout | undefined;
  const next = (): void => {
    const response = socket._httpMessage;
    if (socket.destroyed || !response) return;
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

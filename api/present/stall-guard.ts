import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** A caller that takes nothing for so long holds an answer, and a connection, for nobody. */
export const defaultMaxStallMs = 30_000;
/** Of that, while what is held for it is wanted: three seconds. */
const contestedPart = 1 / 10;
const maxCheckIntervalMs = 1_000;

/** Of connections whose callers take nothing, those that hold what others wait for. */
export type FindContested = (stalled: readonly Socket[]) => Iterable<Socket>;

interface Progress {
  /** Bytes that have not left: those of Node's stream, and those of the write that the system is working on. */
  waiting: number;
  queued: number;
  sinceMs: number;
}

/**
 * Cuts connections whose callers do not read: bytes wait for them, and none has left for the longest stall. A caller that
 * reads slowly is not cut, however long its answer takes. A tenth of the longest stall is enough where others wait for
 * what is held for the caller. Whoever made the answer learns of it by the connection's end.
 */
export class StallGuard {
  readonly #maxStallMs: number;
  readonly #findContested: FindContested;
  readonly #sockets = new Map<Socket, Progress>();
  readonly #timer: NodeJS.Timeout;

  constructor(server: Server, maxStallMs: number, findContested: FindContested = () => []) {
    this.#maxStallMs = maxStallMs;
    this.#findContested = findContested;
    server.on('connection', (socket) => {
      this.#sockets.set(socket, { waiting: 0, queued: 0, sinceMs: performance.now() });
      socket.once('close', () => this.#sockets.delete(socket));
    });
    this.#timer = setInterval(() => this.#check(), Math.min(maxCheckIntervalMs, maxStallMs / 4));
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #check(): void {
    const nowMs = performance.now();
    const stalled: Socket[] = [];
    for (const [socket, progress] of this.#sockets) {
      const waiting = socket.writableLength;
      const queued = queuedBytes(socket);
      // More that waits is no progress: it may be the next part of an answer that nobody reads.
      if (waiting === 0 || waiting < progress.waiting || queued !== progress.queued) progress.sinceMs = nowMs;
      else if (nowMs - progress.sinceMs > this.#maxStallMs) socket.destroy();
      else if (nowMs - progress.sinceMs > this.#maxStallMs * contestedPart) stalled.push(socket);
      progress.waiting = waiting;
      progress.queued = queued;
    }
    if (stalled.length === 0) return;
    for (const socket of this.#findContested(stalled)) socket.destroy();
  }
}

/**
 * What the system has not taken yet of the write under way. Node counts the whole write as waiting until its last byte
 * has left; its own idle timeout looks at this number for the same reason, but takes bytes that come in for progress.
 */
function queuedBytes(socket: Socket): number {
  const { _handle: handle } = socket as unknown as { _handle?: { writeQueueSize?: number } | null };
  return handle?.writeQueueSize ?? 0;
}

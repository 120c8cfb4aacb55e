// decision 0032
import type { Socket } from 'node:net';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';
import { resetForUnreadResponse } from '../callers/unread-callers.ts';
import type { Connection } from './connection.ts';
import { readWritten } from './node-internals.ts';
import { readUnacknowledgedBytes } from './unacknowledged-bytes.ts';

/** A client that reads nothing for this long is disconnected, because it occupies memory and a connection. */
export const defaultMaxStallMs = 30_000;
/**
 * Fraction of the stall limit that applies while others wait for resources that the client holds: by default three
 * seconds.
 */
const contestedFraction = 1 / 10;
/**
 * Fraction of the stall limit after which a client is suspected, and the operating system is queried for the bytes that
 * it still buffers for that client.
 */
const suspectFraction = 1 / 3;
const maxCheckIntervalMs = 1_000;
/** Maximum fraction of time spent on these queries. With a hundred thousand connections, one query takes a second. */
const maxQueryFraction = 1 / 10;
/**
 * A client that reads less than this on average, over twice the stall limit, is treated like one that reads nothing.
 */
const minBytesPerSecond = 32 * 1024;
const paceWindowStalls = 2;

/** Finds, among these slow connections, those that hold resources that others wait for. */
export type FindMemoryBlockers = (slow: readonly Socket[]) => Iterable<Socket>;

export interface StallGuardOptions {
  readonly maxStallMs: number;
  readonly findMemoryBlockers: FindMemoryBlockers;
  readonly log: Pick<Logger, 'error'>;
  /** For tests. */
  readonly readHeld?: typeof readUnacknowledgedBytes;
}

interface Progress {
  /** Bytes of all responses that the operating system has accepted. */
  accepted: number;
  /** Bytes that the operating system still buffered at the last query; null if unknown. */
  unacknowledged: number | null;
  /** Time of the last progress. */
  sinceMs: number;
  /** When the client last had no bytes waiting, and how many bytes the operating system had accepted by then. */
  busySinceMs: number;
  acceptedBeforeBusy: number;
}

type WaitingClient = readonly [Socket, Progress];

/**
 * Disconnects clients that do not read: bytes are waiting for them, and none has been sent for the stall limit. A
 * client that reads slowly is not disconnected, however long its response takes. But while others wait for resources
 * that it holds, a client is disconnected if it reads nothing for a tenth of the stall limit or reads too slowly. The
 * code that produces the response notices the closed connection.
 */
export class StallGuard {
  readonly #maxStallMs: number;
  readonly #findMemoryBlockers: FindMemoryBlockers;
  readonly #sockets = new Map<Socket, Progress>();
  readonly #timer: NodeJS.Timeout;
  readonly #readHeld: typeof readUnacknowledgedBytes;
  #isQuerying = false;
  #nextQueryAtMs = 0;

  constructor({
    maxStallMs,
    findMemoryBlockers,
    log,
    readHeld = readUnacknowledgedBytes,
  }: StallGuardOptions) {
    this.#maxStallMs = maxStallMs;
    this.#findMemoryBlockers = findMemoryBlockers;
    this.#readHeld = readHeld;
    const check = (): void => runInBackground(this.#check(), 'check for unread responses', log);
    this.#timer = setInterval(check, Math.min(maxCheckIntervalMs, maxStallMs / 4));
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Watches a connection until it closes. */
  watch({ socket }: Connection): void {
    const nowMs = performance.now();
    const initial = {
      accepted: 0,
      unacknowledged: null,
      sinceMs: nowMs,
      busySinceMs: nowMs,
      acceptedBeforeBusy: 0,
    };
    this.#sockets.set(socket, initial);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  async #check(): Promise<void> {
    const nowMs = performance.now();
    const waiting = [...this.#sockets].filter(([socket, progress]) =>
      updateProgress(socket, progress, nowMs),
    );
    this.#disconnectContested(waiting, nowMs);
    // On a system with many connections, a query takes seconds. The other checks continue in the meantime.
    if (this.#isQuerying || nowMs < this.#nextQueryAtMs) return;
    this.#isQuerying = true;
    try {
      await this.#disconnectStalled(waiting, nowMs);
    } finally {
      this.#isQuerying = false;
    }
  }

  async #disconnectStalled(waiting: readonly WaitingClient[], nowMs: number): Promise<void> {
    const suspects = findStalled(waiting, nowMs - this.#maxStallMs * suspectFraction);
    const firstQueried = await this.#querySystem(suspects);
    // Do not treat the time that the query took as part of the stall.
    for (const [socket] of findStalled(suspects, nowMs - this.#maxStallMs))
      if (!firstQueried.has(socket)) resetForUnreadResponse(socket);
    const endMs = performance.now();
    this.#nextQueryAtMs =
      endMs + Math.min((endMs - nowMs) / maxQueryFraction, this.#maxStallMs * suspectFraction);
  }

  /**
   * Records whether clients that seem to read nothing are receiving the bytes that the operating system buffers for
   * them.
   * @returns the clients queried for the first time, whose progress is still unknown
   */
  async #querySystem(suspects: readonly WaitingClient[]): Promise<ReadonlySet<Socket>> {
    const firstQueried = new Set<Socket>();
    if (suspects.length === 0) return firstQueried;
    const held = await this.#readHeld(suspects.map(([socket]) => socket));
    const nowMs = performance.now();
    for (const [socket, progress] of suspects) {
      updateProgress(socket, progress, nowMs);
      const before = progress.unacknowledged;
      const bytes = held.get(socket) ?? null;
      progress.unacknowledged = bytes;
      if (bytes === null) continue;
      if (before === null) firstQueried.add(socket);
      else if (bytes < before) progress.sinceMs = nowMs;
    }
    return firstQueried;
  }

  #disconnectContested(waiting: readonly WaitingClient[], nowMs: number): void {
    const slow = new Set([
      ...findStalled(waiting, nowMs - this.#maxStallMs * contestedFraction),
      ...findSlow(waiting, nowMs, this.#maxStallMs * paceWindowStalls),
    ]);
    if (slow.size === 0) return;
    const contested = this.#findMemoryBlockers(Array.from(slow, ([socket]) => socket));
    for (const socket of contested) resetForUnreadResponse(socket);
  }
}

const findStalled = (waiting: readonly WaitingClient[], beforeMs: number): WaitingClient[] =>
  waiting.filter(([socket, { sinceMs }]) => sinceMs < beforeMs && !socket.destroyed);

function findSlow(waiting: readonly WaitingClient[], nowMs: number, minBusyMs: number): WaitingClient[] {
  return waiting.filter(([socket, { accepted, acceptedBeforeBusy, busySinceMs }]) => {
    const busyMs = nowMs - busySinceMs;
    const bytesPerSecond = ((accepted - acceptedBeforeBusy) / busyMs) * 1_000;
    return busyMs > minBusyMs && bytesPerSecond < minBytesPerSecond && !socket.destroyed;
  });
}

/**
 * Records what has been sent. More waiting bytes are not progress: they may be the next part of a response that nobody
 * reads.
 * @returns whether bytes wait to be sent
 */
function updateProgress(socket: Socket, progress: Progress, nowMs: number): boolean {
  const { accepted, isWaiting } = readWritten(socket);
  if (!isWaiting) {
    progress.busySinceMs = nowMs;
    progress.acceptedBeforeBusy = accepted;
  }
  if (!isWaiting || accepted !== progress.accepted) {
    progress.sinceMs = nowMs;
    progress.unacknowledged = null;
  }
  progress.accepted = accepted;
  return isWaiting;
}

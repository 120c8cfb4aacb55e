import type { Socket } from 'node:net';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { cutUnread } from '../callers/unread-callers.ts';
import type { Connection } from './connection.ts';
import { readWritten } from './node-internals.ts';
import { readUnacknowledgedBytes } from './unacknowledged-bytes.ts';

/** A client that reads nothing for this long is disconnected: it holds a response and a connection for nothing. */
export const defaultMaxStallMs = 30_000;
/** The fraction of it that suffices while others wait for what the client holds: three seconds. */
const contestedPart = 1 / 10;
/** The fraction of it after which the operating system is asked what it still holds for the client. */
const suspectPart = 1 / 3;
const maxCheckIntervalMs = 1_000;
/** The maximum fraction of time spent asking. A system with a hundred thousand connections takes a second to reply. */
const mostAskingPart = 1 / 10;
/** A client that reads less than this on average, over twice the longest stall, is treated like one that reads nothing. */
const leastBytesPerSecond = 32 * 1024;
const paceStalls = 2;

/** Picks, among connections whose clients read little or nothing, those that hold what others wait for. */
export type FindContested = (slow: readonly Socket[]) => Iterable<Socket>;

export interface StallGuardOptions {
  readonly maxStallMs: number;
  readonly findContested: FindContested;
  readonly log: Pick<Logger, 'error'>;
  /** For tests. */
  readonly readHeld?: typeof readUnacknowledgedBytes;
}

interface Progress {
  /** Bytes of all responses that the system has taken. */
  taken: number;
  /** Bytes the system held when last asked; null if unknown. */
  unacknowledged: number | null;
  /** When the last byte known to have been sent left. */
  sinceMs: number;
  /** Since when bytes have been waiting continuously, and how many had been taken by then. */
  busySinceMs: number;
  busyFrom: number;
}

type Waiting = readonly [Socket, Progress];

/**
 * Disconnects clients that do not read: bytes wait for them, and none has left for the longest stall. A client that reads
 * slowly is not disconnected, however long its response takes. If others wait for what is held for it, a tenth of the
 * longest stall or too slow a pace suffices. The code that produces the response learns of it from the closed connection.
 */
export class StallGuard {
  readonly #maxStallMs: number;
  readonly #findContested: FindContested;
  readonly #sockets = new Map<Socket, Progress>();
  readonly #timer: NodeJS.Timeout;
  readonly #readHeld: typeof readUnacknowledgedBytes;
  #isAsking = false;
  #askAtMs = 0;

  constructor({ maxStallMs, findContested, log, readHeld = readUnacknowledgedBytes }: StallGuardOptions) {
    this.#maxStallMs = maxStallMs;
    this.#findContested = findContested;
    this.#readHeld = readHeld;
    const check = (): void => runInBackground(this.#check(), 'looking for callers that do not read', log);
    this.#timer = setInterval(check, Math.min(maxCheckIntervalMs, maxStallMs / 4));
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Watches a connection until it closes. */
  watch({ socket }: Connection): void {
    const nowMs = performance.now();
    const none = { taken: 0, unacknowledged: null, sinceMs: nowMs, busySinceMs: nowMs, busyFrom: 0 };
    this.#sockets.set(socket, none);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  async #check(): Promise<void> {
    const nowMs = performance.now();
    const waiting = [...this.#sockets].filter(([socket, progress]) => notice(socket, progress, nowMs));
    this.#cutContested(waiting, nowMs);
    // On a system with many connections, asking takes seconds. The other checks continue meanwhile.
    if (this.#isAsking || nowMs < this.#askAtMs) return;
    this.#isAsking = true;
    try {
      await this.#cutUnread(waiting, nowMs);
    } finally {
      this.#isAsking = false;
    }
  }

  async #cutUnread(waiting: readonly Waiting[], nowMs: number): Promise<void> {
    const suspects = findStalled(waiting, nowMs - this.#maxStallMs * suspectPart);
    const isNew = await this.#askSystem(suspects);
    // Time spent asking the system does not count as a stall.
    for (const [socket] of findStalled(suspects, nowMs - this.#maxStallMs))
      if (!isNew.has(socket)) cutUnread(socket);
    const endMs = performance.now();
    this.#askAtMs = endMs + Math.min((endMs - nowMs) / mostAskingPart, this.#maxStallMs * suspectPart);
  }

  /**
   * Records whether clients that seem to read nothing do take what the system holds for them, or have started to.
   * @returns those checked for the first time; nothing is known about them yet
   */
  async #askSystem(suspects: readonly Waiting[]): Promise<ReadonlySet<Socket>> {
    const isNew = new Set<Socket>();
    if (suspects.length === 0) return isNew;
    const held = await this.#readHeld(suspects.map(([socket]) => socket));
    const nowMs = performance.now();
    for (const [socket, progress] of suspects) {
      notice(socket, progress, nowMs);
      const before = progress.unacknowledged;
      const bytes = held.get(socket) ?? null;
      progress.unacknowledged = bytes;
      if (bytes === null) continue;
      if (before === null) isNew.add(socket);
      else if (bytes < before) progress.sinceMs = nowMs;
    }
    return isNew;
  }

  #cutContested(waiting: readonly Waiting[], nowMs: number): void {
    const slow = new Set([
      ...findStalled(waiting, nowMs - this.#maxStallMs * contestedPart),
      ...findSlow(waiting, nowMs, this.#maxStallMs * paceStalls),
    ]);
    if (slow.size === 0) return;
    const contested = this.#findContested(Array.from(slow, ([socket]) => socket));
    for (const socket of contested) cutUnread(socket);
  }
}

const findStalled = (waiting: readonly Waiting[], beforeMs: number): Waiting[] =>
  waiting.filter(([socket, { sinceMs }]) => sinceMs < beforeMs && !socket.destroyed);

function findSlow(waiting: readonly Waiting[], nowMs: number, overMs: number): Waiting[] {
  return waiting.filter(([socket, { taken, busyFrom, busySinceMs }]) => {
    const busyMs = nowMs - busySinceMs;
    const bytesPerSecond = ((taken - busyFrom) / busyMs) * 1_000;
    return busyMs > overMs && bytesPerSecond < leastBytesPerSecond && !socket.destroyed;
  });
}

/**
 * Records what has been sent. More waiting bytes are not progress: they may be the next part of a response that nobody
 * reads.
 * @returns whether anything waits
 */
function notice(socket: Socket, progress: Progress, nowMs: number): boolean {
  const { taken, isWaiting } = readWritten(socket);
  if (!isWaiting) {
    progress.busySinceMs = nowMs;
    progress.busyFrom = taken;
  }
  if (!isWaiting || taken !== progress.taken) {
    progress.sinceMs = nowMs;
    progress.unacknowledged = null;
  }
  progress.taken = taken;
  return isWaiting;
}

import type { Socket } from 'node:net';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { cutUnread } from '../callers/unread-callers.ts';
import type { Connection } from './connection.ts';
import { readWritten } from './node-internals.ts';
import { readUnacknowledgedBytes } from './unacknowledged-bytes.ts';

/** A caller that takes nothing for this long is cut: it holds an answer and a connection in vain. */
export const defaultMaxStallMs = 30_000;
/** The part of it that is enough while others wait for what the caller holds: three seconds. */
const contestedPart = 1 / 10;
/** The part of it after which the system is asked what it still holds for the caller. */
const suspectPart = 1 / 3;
const maxCheckIntervalMs = 1_000;
/** The part of the time that asking may take at most: a system with a hundred thousand connections answers in a second. */
const mostAskingPart = 1 / 10;
/** A caller that takes less on average, over twice the longest stall, is treated like one that takes nothing. */
const leastBytesPerSecond = 32 * 1024;
const paceStalls = 2;

/** Picks, among connections whose callers take nothing or little, those that hold what others wait for. */
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
  /** What it held at the last look of that; null where that is not known. */
  unacknowledged: number | null;
  /** Of the last byte that is known to have left. */
  sinceMs: number;
  /** Since when bytes have been waiting without a break, and what had been taken by then. */
  busySinceMs: number;
  busyFrom: number;
}

type Waiting = readonly [Socket, Progress];

/**
 * Cuts connections whose callers do not read: bytes wait for them, and none has left for the longest stall. A caller that
 * reads slowly is not cut, however long its answer takes. Where others wait for what is held for the caller, a tenth of
 * the longest stall is enough, and so is a pace that is too slow. The code that makes the answer learns of it by the
 * connection's end.
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

  /** Looks at a connection until it is closed. */
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
    // Where the system has many connections, asking takes seconds: the rest goes on meanwhile.
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
    // What passes while the system is asked is nobody's stall.
    for (const [socket] of findStalled(suspects, nowMs - this.#maxStallMs))
      if (!isNew.has(socket)) cutUnread(socket);
    const endMs = performance.now();
    this.#askAtMs = endMs + Math.min((endMs - nowMs) / mostAskingPart, this.#maxStallMs * suspectPart);
  }

  /**
   * Notes whether callers that seem to take nothing do take what the system holds for them, or have begun to meanwhile.
   * @returns those for which that was looked at for the first time: nothing can be said of them yet
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
 * Notes what has left. More that waits is no progress: it may be the next part of an answer that nobody reads.
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

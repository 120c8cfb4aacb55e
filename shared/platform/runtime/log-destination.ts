// decisions 0044, 0046
import { fstatSync, write, writeSync } from 'node:fs';

/** Maximum size of log lines waiting for the disk or the reader of a pipe. Further lines are lost. */
const maxWaitingBytes = 4_000_000;
/** Delay before a retry after a failure, such as a full disk. */
const retryMs = 1_000;
/** Minimum time between two writes, so that a busy process writes many lines at once. A killed process loses these. */
const minIntervalMs = 25;
/** More than this is written at once. */
const maxDelayedBytes = 64 * 1024;
/** Polling interval while the reader of a pipe is behind. */
const pollMs = 20;
/** How long an exiting process waits for a reader that reads nothing. */
const defaultMaxStandstillMs = 3_000;
/**
 * Maximum total time for a slow reader. It is limited because the exiting process may still occupy a port that it no
 * longer serves.
 */
const defaultMaxFlushMs = 15_000;

export interface LogDestinationOptions {
  readonly maxStandstillMs?: number | undefined;
  readonly maxFlushMs?: number | undefined;
}

/**
 * Writes a process's log lines to stdout or stderr, in order and without blocking. If the output accepts no data (a
 * full disk, or a reader that is slow, stalled or gone), the process neither crashes, nor fails to exit, nor fills its
 * memory. pino's destination does one of the three, depending on its options.
 *
 * The supervisor reads these lines and writes them with a separate class, `LogFile`. That class rotates files, and it
 * writes synchronously so that the last lines of a part are on disk before its exit is reported. A process that serves
 * callers must not wait for a disk, and has no file to rotate.
 */
export class LogDestination {
  readonly #fd: 1 | 2;
  readonly #maxStandstillMs: number;
  readonly #maxFlushMs: number;
  /** False for a file or a terminal: writes to these may block, but never fail with EAGAIN. */
  readonly #isStream: boolean;
  #waiting: string[] = [];
  /** The part of the current lines that is not written yet. */
  #chunk: Buffer = Buffer.alloc(0);
  /** Bytes of `#waiting` and `#chunk` together. */
  #waitingBytes = 0;
  /** Whether a thread of the pool is writing the chunk. */
  #isWriting = false;
  /** Whether an event loop turn, a write or a timer will continue writing. */
  #isScheduled = false;
  #lastWriteAtMs = -Infinity;
  #giveUpAtMs: number | null = null;
  /** Deadline for the final flush, even if the reader keeps reading. */
  #endFlushAtMs: number | null = null;
  #lostLines = 0;
  #reportLost: ((lines: number) => void) | null = null;

  constructor(
    fd: 1 | 2,
    { maxStandstillMs = defaultMaxStandstillMs, maxFlushMs = defaultMaxFlushMs }: LogDestinationOptions = {},
  ) {
    this.#fd = fd;
    this.#maxStandstillMs = maxStandstillMs;
    this.#maxFlushMs = maxFlushMs;
    const stats = fstatSync(fd);
    this.#isStream = stats.isFIFO() || stats.isSocket();
  }

  /** @param report is called with the number of lost lines once the waiting lines are written */
  onLost(report: (lines: number) => void): void {
    this.#reportLost = report;
  }

  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#waitingBytes + bytes > maxWaitingBytes) {
      this.#lostLines += 1;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += bytes;
    if (!this.#isScheduled) this.#schedule();
  }

  /** Lines of an idle process are written in this event loop turn, those of a busy one a moment later. */
  #schedule(): void {
    this.#isScheduled = true;
    const delayMs = this.#lastWriteAtMs + minIntervalMs - performance.now();
    if (delayMs <= 0 || this.#waitingBytes > maxDelayedBytes) setImmediate(() => this.#writeNext());
    else setTimeout(() => this.#writeNext(), delayMs);
  }

  /**
   * Writes all waiting lines before the process exits. Stops at a full disk, a stalled reader, or a reader that takes
   * too long in total. pino also calls it after a fatal line.
   */
  flushSync(): void {
    const now = performance.now();
    this.#giveUpAtMs ??= now + this.#maxStandstillMs;
    this.#endFlushAtMs ??= now + this.#maxFlushMs;
    do {
      // A chunk that a thread is writing has already been passed to the system.
      const bytes = this.#isWriting ? this.#joinWaiting() : Buffer.concat([this.#chunk, this.#joinWaiting()]);
      const written = this.#writeAll(bytes);
      this.#waitingBytes -= written;
      if (!this.#isWriting) this.#chunk = bytes.subarray(written);
      if (written < bytes.length) return;
      this.#reportLostLines();
    } while (this.#waiting.length > 0);
  }

  #writeAll(bytes: Buffer): number {
    let written = 0;
    while (written < bytes.length) {
      try {
        written += this.#writeNow(bytes.subarray(written));
        this.#giveUpAtMs = performance.now() + this.#maxStandstillMs;
      } catch (error) {
        const endAtMs = Math.min(this.#giveUpAtMs!, this.#endFlushAtMs!);
        if (!wouldBlock(error) || performance.now() > endAtMs) return written;
        sleepSync(pollMs);
      }
    }
    return written;
  }

  #writeNext(): void {
    if (this.#chunk.length === 0) this.#chunk = this.#joinWaiting();
    if (this.#chunk.length === 0) {
      this.#isScheduled = false;
      this.#reportLostLines();
      return;
    }
    this.#lastWriteAtMs = performance.now();
    if (!this.#isStream) {
      this.#isWriting = true;
      write(this.#fd, this.#chunk, (error, written) => {
        this.#isWriting = false;
        this.#onWritten(error, written);
      });
      return;
    }
    let written = 0;
    let failure: unknown = null;
    try {
      written = this.#writeNow(this.#chunk);
    } catch (error) {
      failure = error;
    }
    this.#onWritten(failure, written);
  }

  #onWritten(error: unknown, written: number): void {
    this.#chunk = this.#chunk.subarray(written);
    this.#waitingBytes -= written;
    const isComplete = this.#chunk.length === 0 && this.#waiting.length > 0;
    if (error === null && isComplete) this.#schedule();
    else if (error === null) this.#writeNext();
    else if (wouldBlock(error)) setTimeout(() => this.#writeNext(), pollMs);
    // A full disk does not keep a process alive that has nothing else to do.
    else setTimeout(() => this.#writeNext(), retryMs).unref();
  }

  /** @throws Error with the code EAGAIN if the reader of a pipe is behind */
  #writeNow(bytes: Buffer): number {
    if (this.#isStream) stopBlocking(this.#fd);
    return writeSync(this.#fd, bytes);
  }

  #joinWaiting(): Buffer {
    const bytes = Buffer.from(this.#waiting.join(''));
    this.#waiting = [];
    return bytes;
  }

  #reportLostLines(): void {
    const lines = this.#lostLines;
    this.#lostLines = 0;
    if (lines > 0) this.#reportLost?.(lines);
  }
}

const wouldBlock = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EAGAIN';

/**
 * A blocking write cannot be cancelled. On the main thread it freezes the process; on a pool thread it prevents the
 * process from exiting. Node makes pipes and sockets non-blocking when it opens them as streams, but a process that
 * shares them, such as the npm that started this one, makes them blocking again when it exits. Therefore this runs
 * before every write.
 */
function stopBlocking(fd: 1 | 2): void {
  const stream: object = fd === 1 ? process.stdout : process.stderr;
  const { _handle: handle } = stream as { _handle?: { setBlocking?(isBlocking: boolean): number } };
  handle?.setBlocking?.(false);
}

function sleepSync(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

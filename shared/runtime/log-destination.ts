import { fstatSync, write, writeSync } from 'node:fs';

/** Lines that wait for the disk, or for the reader of a pipe; those beyond are lost. */
const maxWaitingBytes = 4_000_000;
/** After a failure, such as a full disk. */
const retryMs = 1_000;
/** While the reader of a pipe is behind. */
const pollMs = 20;
/** A process that ends waits for a reader that takes something at least this often. */
const defaultMaxStandstillMs = 3_000;
/** It waits no longer than this for one that takes little at a time: it may still have a port, and serves nobody. */
const defaultMaxFlushMs = 15_000;

export interface LogDestinationOptions {
  readonly maxStandstillMs?: number | undefined;
  readonly maxFlushMs?: number | undefined;
}

/**
 * Where a process's log lines go, stdout or stderr: in order and without blocking. That it takes none (its disk is full, its
 * reader is slow, stands still or is gone) neither ends the process, nor keeps it from ending, nor fills its memory. pino's
 * own destination does one of the three, depending on its options.
 *
 * The supervisor writes what it reads from here by a class of its own, `LogFile`. That one rotates files, and writes
 * synchronously, so that the last words of a part are on disk before its end is reported. A process that serves callers must
 * not wait for a disk, and has no file of its own to rotate.
 */
export class LogDestination {
  readonly #fd: 1 | 2;
  readonly #maxStandstillMs: number;
  readonly #maxFlushMs: number;
  /** Else a file or a terminal, which has no way to refuse instead of blocking. */
  readonly #isStream: boolean;
  #waiting: string[] = [];
  /** Taken from the waiting lines, and not or partly written. */
  #chunk: Buffer = Buffer.alloc(0);
  /** Of both. */
  #waitingBytes = 0;
  /** Of the chunk, by a thread of the pool. */
  #isWriting = false;
  /** A turn of the event loop, a write or a timer brings what waits to be written. */
  #isScheduled = false;
  #giveUpAtMs: number | null = null;
  /** However much is taken until then. */
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

  /** @param report is told how many lines are missing, once those that waited are written */
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
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // Together with all other lines of this turn of the event loop.
    setImmediate(() => this.#writeNext());
  }

  /**
   * For a process that ends: writes what waits before it returns, and gives up on a full disk, a reader that stands still, and
   * one that is not done in a while. pino calls it after a fatal line as well.
   */
  flushSync(): void {
    const now = performance.now();
    this.#giveUpAtMs ??= now + this.#maxStandstillMs;
    this.#endFlushAtMs ??= now + this.#maxFlushMs;
    do {
      // What a thread is writing is the system's.
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
    if (error === null) this.#writeNext();
    else if (wouldBlock(error)) setTimeout(() => this.#writeNext(), pollMs);
    // A process that has nothing else to do does not wait for a disk.
    else setTimeout(() => this.#writeNext(), retryMs).unref();
  }

  /** @throws Error with the code EAGAIN where the reader of a pipe is behind */
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
 * A write that blocks cannot be taken back: by the main thread it stops the process, by a thread of the pool it keeps the
 * process from exiting. Node makes pipes and sockets non-blocking when it opens them as streams, but who shares them, such
 * as the npm that started this process, sets them back at its own end; hence each time.
 */
function stopBlocking(fd: 1 | 2): void {
  const stream: object = fd === 1 ? process.stdout : process.stderr;
  const { _handle: handle } = stream as { _handle?: { setBlocking?(isBlocking: boolean): number } };
  handle?.setBlocking?.(false);
}

function sleepSync(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

import { write, writeSync } from 'node:fs';

/** Lines that wait for the disk, or for the reader of a pipe; those beyond are lost. */
const usualMaxWaitingBytes = 4_000_000;
const usualRetryMs = 1_000;

export interface LogDestinationOptions {
  readonly maxWaitingBytes?: number;
  readonly retryMs?: number;
  /** @param lines how many are missing, once those that waited are written */
  readonly onRestored?: (lines: number) => void;
}

/**
 * A file descriptor that log lines are written to, in order and without blocking. That it takes none (its disk is full, its
 * reader is slow or gone) neither ends the process nor fills its memory. pino's own destination does the one or the other,
 * and keeps a process from ending while the disk is full.
 */
export class LogDestination {
  readonly #fd: number;
  readonly #options: LogDestinationOptions;
  #waiting: string[] = [];
  #waitingBytes = 0;
  /** Given to the system, wholly or in part. */
  #chunk: Buffer = Buffer.alloc(0);
  #isWriting = false;
  #retry: NodeJS.Timeout | null = null;
  #lostLines = 0;

  constructor(fd: number, options: LogDestinationOptions = {}) {
    this.#fd = fd;
    this.#options = options;
  }

  write(line: string): void {
    if (this.#waitingBytes + line.length > (this.#options.maxWaitingBytes ?? usualMaxWaitingBytes)) {
      this.#lostLines += 1;
      return;
    }
    this.#waiting.push(line);
    this.#waitingBytes += line.length;
    if (!this.#isWriting && this.#retry === null) this.#writeNext();
  }

  /** For a process that ends: what can be written at once. pino calls it after a fatal line as well. */
  flushSync(): void {
    try {
      // What is on its way is the system's.
      let rest = this.#isWriting ? this.#takeWaiting() : Buffer.concat([this.#chunk, this.#takeWaiting()]);
      if (!this.#isWriting) this.#chunk = rest.subarray(rest.length);
      while (rest.length > 0) rest = rest.subarray(writeSync(this.#fd, rest));
    } catch {
      // A process that is to end does not wait for a disk.
    }
  }

  #takeWaiting(): Buffer {
    const chunk = Buffer.from(this.#waiting.join(''));
    this.#waiting = [];
    this.#waitingBytes = 0;
    return chunk;
  }

  #writeNext(): void {
    if (this.#chunk.length === 0) this.#chunk = this.#takeWaiting();
    if (this.#chunk.length === 0) {
      this.#tellLost();
      return;
    }
    this.#isWriting = true;
    write(this.#fd, this.#chunk, (error, written) => {
      this.#isWriting = false;
      if (error === null) {
        this.#chunk = this.#chunk.subarray(written);
        this.#writeNext();
        return;
      }
      this.#retry = setTimeout(() => {
        this.#retry = null;
        this.#writeNext();
      }, this.#options.retryMs ?? usualRetryMs).unref();
    });
  }

  #tellLost(): void {
    const lines = this.#lostLines;
    this.#lostLines = 0;
    if (lines > 0) this.#options.onRestored?.(lines);
  }
}

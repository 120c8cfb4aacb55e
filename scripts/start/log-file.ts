// decision 0044
import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { BoundedFile } from './bounded-file.ts';

const defaultMaxBytes = 20_000_000;
const defaultRetryMs = 1_000;
/** Minimum free space to resume writing. On an almost full disk, writes would otherwise fail and recover many times. */
const minFreeBytes = 1_000_000;
const lineFeed = 10;

export interface LogFileOptions {
  readonly maxBytes?: number;
  /** Interval between attempts to write again after a failure. */
  readonly retryMs?: number;
  readonly onLost?: (error: Error) => void;
  /** @param lines how many lines are missing */
  readonly onRestored?: (lines: number) => void;
}

/**
 * A part's log, with a size limit. If the disk accepts no data, lines are lost, but nothing else fails. They are
 * counted until the file can be written again, and a line in the file then reports how many are missing. Processes that
 * serve callers log through `LogDestination`, which never waits for a disk. The comment of that class explains why
 * there are two classes.
 */
export class LogFile {
  readonly #file: BoundedFile;
  readonly #options: LogFileOptions;
  #retryTimer: NodeJS.Timeout | null = null;
  #isClosed = false;
  #lostLines = 0;
  /** Whether the start of a line was lost and its end has not arrived yet. */
  #isMidLostLine = false;

  constructor(path: string, options: LogFileOptions = {}) {
    this.#file = new BoundedFile(path, options.maxBytes ?? defaultMaxBytes);
    this.#options = options;
  }

  /** Writes synchronously, so that a part's last lines are on disk when its exit is reported. Never throws. */
  write(chunk: Buffer): void {
    if (this.#isClosed) return;
    const lines = this.#retryTimer === null ? this.#skipLostLine(chunk) : chunk;
    if (lines.length === 0) return;
    const { written, error } =
      this.#retryTimer === null ? this.#file.append(lines) : { written: 0, error: null };
    if (written === lines.length) return;
    const lost = lines.subarray(written);
    for (const byte of lost) if (byte === lineFeed) this.#lostLines += 1;
    this.#isMidLostLine = lost.at(-1) !== lineFeed;
    if (error !== null) this.#startRetrying(error);
  }

  close(): void {
    this.#isClosed = true;
    if (this.#retryTimer !== null) clearInterval(this.#retryTimer);
    this.#file.close();
  }

  /** Skips the remaining part of a line whose start was lost. */
  #skipLostLine(chunk: Buffer): Buffer {
    if (!this.#isMidLostLine) return chunk;
    const end = chunk.indexOf(lineFeed);
    this.#isMidLostLine = end === -1;
    return end === -1 ? chunk.subarray(chunk.length) : chunk.subarray(end + 1);
  }

  #startRetrying(error: Error): void {
    this.#retryTimer = setInterval(() => this.#retry(), this.#options.retryMs ?? defaultRetryMs);
    this.#retryTimer.unref();
    this.#options.onLost?.(error);
  }

  #retry(): void {
    if (!hasSpace(dirname(this.#file.path))) return;
    const lines = this.#lostLines + (this.#isMidLostLine ? 1 : 0);
    const time = new Date().toISOString();
    const note = `${JSON.stringify({ level: 'warn', time, role: 'start', lines, msg: 'log lines lost here' })}\n`;
    this.#file.endLine();
    if (this.#file.append(Buffer.from(note)).error !== null) return;
    clearInterval(this.#retryTimer!);
    this.#retryTimer = null;
    this.#lostLines = 0;
    this.#options.onRestored?.(lines);
  }
}

function hasSpace(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= minFreeBytes;
  } catch {
    // The write itself will report the problem, or recreate a deleted folder.
    return true;
  }
}

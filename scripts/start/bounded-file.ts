import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

const lineFeed = 10;

/**
 * An append-only file of lines with a size limit. A full file is renamed to `<name>.1` and replaces the previous one.
 */
export class BoundedFile {
  readonly path: string;
  readonly #maxBytes: number;
  /** Null if the file must be opened first. */
  #fd: number | null = null;
  #size = 0;
  #endsMidLine = false;

  constructor(path: string, maxBytes: number) {
    this.path = path;
    this.#maxBytes = maxBytes;
  }

  /** @returns how many bytes were written, and the error if that was not all of them */
  append(chunk: Buffer): { written: number; error: Error | null } {
    let written = 0;
    try {
      const fd = this.#openFor(chunk.length);
      while (written < chunk.length) written += writeSync(fd, chunk, written);
    } catch (error) {
      if (written > 0) this.#countWritten(chunk, written);
      // A descriptor that was closed elsewhere may already belong to another file, which must not be closed.
      if ((error as NodeJS.ErrnoException).code === 'EBADF') this.#fd = null;
      // Reopen it the next time, because an operator who frees space may delete this file.
      this.close();
      return { written, error: error as Error };
    }
    this.#countWritten(chunk, written);
    return { written, error: null };
  }

  /** Ends a truncated line, so that the next one is complete. */
  endLine(): void {
    if (this.#endsMidLine) this.append(Buffer.of(lineFeed));
  }

  close(): void {
    if (this.#fd === null) return;
    const fd = this.#fd;
    this.#fd = null;
    try {
      closeSync(fd);
    } catch {
      // An earlier write failed. It is closed in any case.
    }
  }

  #countWritten(chunk: Buffer, written: number): void {
    this.#size += written;
    this.#endsMidLine = chunk[written - 1] !== lineFeed;
  }

  #openFor(bytes: number): number {
    if (this.#fd === null) this.#open();
    if (this.#size > 0 && this.#size + bytes > this.#maxBytes) {
      this.close();
      this.#rotate();
      this.#open();
    }
    return this.#fd!;
  }

  #open(): void {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    this.#fd = openSync(this.path, 'a', 0o600);
    this.#size = fstatSync(this.#fd).size;
  }

  #rotate(): void {
    try {
      renameSync(this.path, `${this.path}.1`);
    } catch (error) {
      // The file was deleted.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}

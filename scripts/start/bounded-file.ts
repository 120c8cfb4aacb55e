import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

const lineFeed = 10;

/** A file of lines that is appended to and bounded: what is full becomes `<name>.1`, in the place of the one before. */
export class BoundedFile {
  readonly path: string;
  readonly #maxBytes: number;
  /** Null where the file has to be opened first. */
  #fd: number | null = null;
  #size = 0;
  #endsMidLine = false;

  constructor(path: string, maxBytes: number) {
    this.path = path;
    this.#maxBytes = maxBytes;
  }

  /** @returns how many bytes were written, and why not all of them were */
  append(chunk: Buffer): { written: number; error: Error | null } {
    let written = 0;
    try {
      const fd = this.#openFor(chunk.length);
      while (written < chunk.length) written += writeSync(fd, chunk, written);
    } catch (error) {
      if (written > 0) this.#note(chunk, written);
      // Opened again the next time, because an operator who makes room may delete this very file.
      this.close();
      return { written, error: error as Error };
    }
    this.#note(chunk, written);
    return { written, error: null };
  }

  /** Ends a line that was cut short, so that the next one is whole. */
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
      // The failure of an earlier write, or somebody closed it: it is gone either way.
    }
  }

  #note(chunk: Buffer, written: number): void {
    this.#size += written;
    this.#endsMidLine = chunk[written - 1] !== lineFeed;
  }

  #openFor(bytes: number): number {
    if (this.#fd === null) this.#open();
    if (this.#size > 0 && this.#size + bytes > this.#maxBytes) {
      this.close();
      this.#moveAside();
      this.#open();
    }
    return this.#fd!;
  }

  #open(): void {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    this.#fd = openSync(this.path, 'a', 0o600);
    this.#size = fstatSync(this.#fd).size;
  }

  #moveAside(): void {
    try {
      renameSync(this.path, `${this.path}.1`);
    } catch (error) {
      // Somebody deleted it.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}

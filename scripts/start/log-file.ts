import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

const maxBytes = 20_000_000;

/** A part's log. It is bounded: what is full becomes `<name>.1`, in the place of the one before. */
export class LogFile {
  readonly path: string;
  #fd: number;
  #size: number;
  readonly #maxBytes: number;

  constructor(path: string, limitBytes = maxBytes) {
    this.path = path;
    this.#maxBytes = limitBytes;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    this.#fd = openSync(path, 'a', 0o600);
    this.#size = fstatSync(this.#fd).size;
  }

  /** Synchronous, so that a part's last words are on disk when its end is told. */
  write(chunk: Buffer): void {
    if (this.#size + chunk.length > this.#maxBytes && this.#size > 0) this.#rotate();
    this.#size += writeSync(this.#fd, chunk);
  }

  close(): void {
    closeSync(this.#fd);
  }

  #rotate(): void {
    closeSync(this.#fd);
    renameSync(this.path, `${this.path}.1`);
    this.#fd = openSync(this.path, 'a', 0o600);
    this.#size = 0;
  }
}

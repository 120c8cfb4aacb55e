import { StringDecoder } from 'node:string_decoder';

/** A line is not kept longer than this. What is longer is passed on in parts. */
const maxLineLength = 1_000_000;

/** Passes on the output of a process in whole lines, so that lines of several processes do not mix. */
export class LineSplitter {
  readonly #write: (lines: string) => void;
  readonly #decoder = new StringDecoder('utf8');
  #unfinished: string[] = [];
  #unfinishedLength = 0;

  constructor(write: (lines: string) => void) {
    this.#write = write;
  }

  add(chunk: Buffer): void {
    const text = this.#decoder.write(chunk);
    const end = text.lastIndexOf('\n') + 1;
    if (end > 0) {
      this.#write(this.#unfinished.join('') + text.slice(0, end));
      this.#unfinished = [];
      this.#unfinishedLength = 0;
    }
    if (end === text.length) return;
    this.#unfinished.push(text.slice(end));
    this.#unfinishedLength += text.length - end;
    if (this.#unfinishedLength > maxLineLength) this.end();
  }

  /** Passes on what the process wrote last, as a line. */
  end(): void {
    if (this.#unfinishedLength > 0) this.#write(`${this.#unfinished.join('')}\n`);
    this.#unfinished = [];
    this.#unfinishedLength = 0;
  }
}

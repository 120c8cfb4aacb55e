import type { WriteStream } from 'node:tty';

/** One line that tells what is being done and for how long; on a terminal alone it is drawn again every second. */
export class Progress {
  readonly #stream: WriteStream;
  #timer: NodeJS.Timeout | undefined;

  constructor(stream: WriteStream) {
    this.#stream = stream;
  }

  show(text: string): void {
    this.clear();
    if (!this.#stream.isTTY) {
      this.#stream.write(`… ${text}\n`);
      return;
    }
    const startedAtMs = Date.now();
    const draw = (): void => {
      this.#stream.write(`\r\u001b[K… ${text} · ${Math.round((Date.now() - startedAtMs) / 1_000)} s`);
    };
    draw();
    this.#timer = setInterval(draw, 1_000);
  }

  clear(): void {
    clearInterval(this.#timer);
    if (this.#stream.isTTY) this.#stream.write('\r\u001b[K');
  }
}

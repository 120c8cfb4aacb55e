import type { WriteStream } from 'node:tty';

/** Shows the current step and its duration in one line. Only a terminal gets an update every second. */
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

import type { WriteStream } from 'node:tty';

/**
 * Prints results to stdout. Until the next one, shows the current step in one line of another stream; only a terminal
 * gets its duration, every second.
 */
export class Output {
  readonly #stream: WriteStream;
  #timer: NodeJS.Timeout | undefined;
  #shown = '';

  /** @param stream for the steps */
  constructor(stream: WriteStream) {
    this.#stream = stream;
  }

  show(step: string): void {
    this.#clear();
    this.#shown = step;
    if (!this.#stream.isTTY) {
      this.#stream.write(`… ${step}\n`);
      return;
    }
    const startedAtMs = Date.now();
    const draw = (): void => {
      this.#stream.write(`\r\u001b[K… ${step} · ${Math.round((Date.now() - startedAtMs) / 1_000)} s`);
    };
    draw();
    this.#timer = setInterval(draw, 1_000);
  }

  /**
   * Shows each tenth of a step.
   * @param share 0..1
   */
  showShare(step: string, share: number, whole: string): void {
    const text = `${step}, ${Math.floor(share * 10) * 10} % of ${whole}`;
    if (text !== this.#shown) this.show(text);
  }

  print(text: string): void {
    this.#clear();
    console.log(text);
  }

  #clear(): void {
    clearInterval(this.#timer);
    if (this.#stream.isTTY) this.#stream.write('\r\u001b[K');
  }
}

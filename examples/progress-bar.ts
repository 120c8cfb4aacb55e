const width = 30;

/** A one-line progress bar for a terminal. Writes nothing if the stream is a file or a pipe. */
export class ProgressBar {
  readonly #stream: NodeJS.WriteStream;
  readonly #label: string;
  readonly #total: number;
  #done = 0;

  constructor(stream: NodeJS.WriteStream, label: string, total: number) {
    this.#stream = stream;
    this.#label = label;
    this.#total = total;
    this.#draw();
  }

  advance(count: number): void {
    this.#done += count;
    this.#draw();
  }

  end(): void {
    if (this.#stream.isTTY) this.#stream.write('\n');
  }

  #draw(): void {
    if (this.#stream.isTTY) this.#stream.write(`\r${formatBar(this.#label, this.#done, this.#total)}`);
  }
}

export function formatBar(label: string, done: number, total: number): string {
  const filled = Math.round((width * done) / Math.max(1, total));
  return `${label} ${'█'.repeat(filled)}${'░'.repeat(width - filled)} ${done}/${total}`;
}

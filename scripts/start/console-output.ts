import { createPaint, formatLogLine, formatPartName, formatTime, type Paint } from './format-log-line.ts';

/** Where lines go: the process's stdout, or a test's list. */
export interface LineSink {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

const maxLinesASecond = 40;
const routineMark = '"level":"info"';

/** What a person who ran `npm start` sees. */
export class ConsoleOutput {
  readonly paint: Paint;
  readonly #sink: LineSink;
  readonly #unfinished = new Map<string, string>();
  #shownThisSecond = 0;
  #skipped = 0;
  #secondTimer: NodeJS.Timeout | undefined;

  constructor(sink: LineSink) {
    this.#sink = sink;
    this.paint = createPaint(sink.isTTY === true);
  }

  print(text: string): void {
    this.#sink.write(`${text}\n`);
  }

  /** One part of the stack that has come up. */
  printPart(name: string, what: string, tookMs: number): void {
    this.print(`  ${this.paint('green', '✓')} ${formatPartName(name)} ${what} ${this.paint('dim', formatMs(tookMs))}`);
  }

  /** Something that happened to a part while all runs. */
  printEvent(name: string, text: string, style: 'yellow' | 'green'): void {
    const start = `${this.paint('dim', formatTime(new Date()))} ${this.paint('cyan', formatPartName(name))}`;
    this.print(`${start} ${this.paint(style, text)}`);
  }

  /** What a part writes to stdout: whole lines are shown, and under load only as many as anybody can read. */
  printLog(part: string, chunk: Buffer): void {
    const lines = `${this.#unfinished.get(part) ?? ''}${chunk.toString()}`.split('\n');
    this.#unfinished.set(part, lines.pop()!);
    for (const line of lines) {
      // Thousands of requests a second must not cost a parse each; a warning is always shown.
      if (this.#shownThisSecond >= maxLinesASecond && line.includes(routineMark)) {
        this.#skipped += 1;
        continue;
      }
      const text = formatLogLine(part, line, this.paint);
      if (text === null) continue;
      this.print(text);
      this.#shownThisSecond += 1;
      this.#secondTimer ??= setTimeout(() => this.#endSecond(), 1_000).unref();
    }
  }

  #endSecond(): void {
    if (this.#skipped > 0) this.print(this.paint('dim', `         … and ${this.#skipped} more lines, which are in the logs`));
    this.#shownThisSecond = 0;
    this.#skipped = 0;
    this.#secondTimer = undefined;
  }
}

export function formatMs(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

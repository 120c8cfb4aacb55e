import {
  accessMessage,
  createPaint,
  formatLogLine,
  formatPartName,
  formatTime,
  type Paint,
} from './format-log-line.ts';

/** Where lines go: the process's stdout, or a test's list. */
export interface LineSink {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

const maxLinesASecond = 40;
const errorMark = '"level":"error"';
const routineMark = '"level":"info"';

/** What a person who ran `npm start` sees. */
export class ConsoleOutput {
  readonly paint: Paint;
  readonly #sink: LineSink;
  readonly #unfinished = new Map<string, string>();
  #isMuted = false;
  readonly #saidThisSecond = new Set<string>();
  #shownThisSecond = 0;
  #skipped = 0;
  #isTimed = false;

  constructor(sink: LineSink) {
    this.#sink = sink;
    this.paint = createPaint(sink.isTTY === true);
  }

  print(text: string): void {
    this.#sink.write(`${text}\n`);
  }

  /** One part of the stack that has come up; of one that runs elsewhere there is no time to tell. */
  printPart(name: string, what: string, tookMs: number | null): void {
    const took = tookMs === null ? '' : ` ${this.paint('dim', formatMs(tookMs))}`;
    this.print(`  ${this.paint('green', '✓')} ${formatPartName(name)} ${what}${took}`);
  }

  /** While the stack comes up, its own lines tell enough; a part's warnings are shown all the same. */
  muteRoutine(): void {
    this.#isMuted = true;
  }

  unmuteRoutine(): void {
    this.#isMuted = false;
    this.#skipped = 0;
  }

  /** Something that happened to a part while all runs. */
  printEvent(name: string, text: string, style: 'yellow' | 'green'): void {
    const start = `${this.paint('dim', formatTime(new Date()))} ${this.paint('cyan', formatPartName(name))}`;
    this.print(`${start} ${this.paint(style, text)}`);
  }

  /**
   * What a part writes to stdout. Nobody reads thousands of lines a second, or sixteen that say the same: the rest are
   * counted, and stand in the log.
   */
  printLog(part: string, chunk: Buffer): void {
    const lines = `${this.#unfinished.get(part) ?? ''}${chunk.toString()}`.split('\n');
    this.#unfinished.set(part, lines.pop()!);
    for (const line of lines)
      if (!this.#isMuted || !line.includes(routineMark)) this.#printLogLine(part, line);
  }

  #printLogLine(part: string, line: string): void {
    // Before it is parsed, which costs more than all else here.
    const isTooMuch = this.#shownThisSecond >= maxLinesASecond && line.includes(routineMark);
    if (isTooMuch || this.#isRepeated(part, line)) {
      this.#skipped += 1;
      return;
    }
    const text = formatLogLine(part, line, this.paint);
    if (text === null) return;
    this.print(text);
    this.#shownThisSecond += 1;
    if (!this.#isTimed) setTimeout(() => this.#endSecond(), 1_000).unref();
    this.#isTimed = true;
  }

  #isRepeated(part: string, line: string): boolean {
    const message = /"msg":"(.*?)"[,}]/.exec(line)?.[1];
    if (message === undefined || message === accessMessage) return false;
    // While the stack comes up, what every process says of the catalog is said once. Two errors are never the same for
    // having the same words: each is shown that differs in more than its time.
    const isError = line.includes(errorMark);
    const words = isError ? line.replace(/"time":[^,]*,?/, '') : message;
    const key = this.#isMuted ? message : `${part} ${words}`;
    const isKnown = this.#saidThisSecond.has(key);
    this.#saidThisSecond.add(key);
    return isKnown;
  }

  #endSecond(): void {
    this.#isTimed = false;
    if (this.#isMuted) return;
    if (this.#skipped > 0)
      this.print(this.paint('dim', `         … and ${this.#skipped} more lines, which are in the logs`));
    this.#shownThisSecond = 0;
    this.#skipped = 0;
    this.#saidThisSecond.clear();
  }
}

export function formatMs(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

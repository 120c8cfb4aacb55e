import {
  accessMessage,
  createPaint,
  formatLogLine,
  formatPartName,
  formatTime,
  type Paint,
} from './format-log-line.ts';

/** The destination of lines: the process's stdout, or a list in tests. */
export interface LineSink {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

const maxLinesPerSecond = 40;
/** In addition to the lines above. */
const maxWarningsPerSecond = 20;
const warningMark = '"level":"warn"';
const routineMark = '"level":"info"';
/** Fields that specify where or for whom something happened, but not what. */
const contextFields = /"(?:time|role|pid|requestId|purpose|shard|call)":(?:"[^"]*"|\d+),?/g;
/** Fields that differ when the same error is logged twice. */
const processFields = /"(?:time|role|pid)":(?:"[^"]*"|\d+),?/g;

/** The console output of `npm start`. */
export class ConsoleOutput {
  readonly paint: Paint;
  readonly #sink: LineSink;
  readonly #unfinished = new Map<string, string>();
  #isMuted = false;
  readonly #messagesThisSecond = new Set<string>();
  #shownThisSecond = 0;
  #warnedThisSecond = 0;
  #skipped = 0;
  #skippedWarnings = 0;
  #hasTimer = false;

  constructor(sink: LineSink) {
    this.#sink = sink;
    this.paint = createPaint(sink.isTTY === true);
  }

  print(text: string): void {
    this.#sink.write(`${text}\n`);
  }

  /** Prints that a part of the stack is ready. `tookMs` is null for a part that runs elsewhere. */
  printPart(name: string, what: string, tookMs: number | null): void {
    const took = tookMs === null ? '' : ` ${this.paint('dim', formatMs(tookMs))}`;
    this.print(`  ${this.paint('green', '✓')} ${formatPartName(name)} ${what}${took}`);
  }

  /**
   * Hides the routine lines of parts while the stack starts, because `printPart` reports its progress. Warnings of
   * parts are still shown.
   */
  muteRoutine(): void {
    this.#isMuted = true;
  }

  unmuteRoutine(): void {
    this.#isMuted = false;
    this.#beginSecond();
  }

  /** Prints an event of a part while everything is running. */
  printEvent(name: string, text: string, style: 'yellow' | 'green'): void {
    const start = `${this.paint('dim', formatTime(new Date()))} ${this.paint('cyan', formatPartName(name))}`;
    this.print(`${start} ${this.paint(style, text)}`);
  }

  /**
   * Prints what a part writes to stdout. Beyond a number of lines per second, and for repeated lines, only prints a
   * count, because nobody can read thousands of lines per second. The log contains all of them.
   */
  printLog(part: string, chunk: Buffer): void {
    const lines = `${this.#unfinished.get(part) ?? ''}${chunk.toString()}`.split('\n');
    this.#unfinished.set(part, lines.pop()!);
    for (const line of lines)
      if (!this.#isMuted || !line.includes(routineMark)) this.#printLogLine(part, line);
  }

  #printLogLine(part: string, line: string): void {
    // Check before parsing, which is the most expensive step here.
    const isRoutine = line.includes(routineMark);
    const isWarning = !isRoutine && line.includes(warningMark);
    const isOverLimit =
      (isRoutine && this.#shownThisSecond >= maxLinesPerSecond) ||
      (isWarning && this.#warnedThisSecond >= maxWarningsPerSecond);
    if (isOverLimit || this.#isRepeated(part, line)) {
      this.#skipped += 1;
      if (isWarning) this.#skippedWarnings += 1;
      return;
    }
    const text = formatLogLine(part, line, this.paint);
    if (text === null) return;
    this.print(text);
    this.#shownThisSecond += 1;
    if (isWarning) this.#warnedThisSecond += 1;
    if (!this.#hasTimer) setTimeout(() => this.#endSecond(), 1_000).unref();
    this.#hasTimer = true;
  }

  /**
   * Returns whether the same line was already logged within this second. Two routine lines are the same if their
   * messages are equal. For warnings, fields such as the upstream must be equal, too, and for errors the whole line.
   */
  #isRepeated(part: string, line: string): boolean {
    const message = /"msg":"(.*?)"[,}]/.exec(line)?.[1];
    if (message === undefined || message === accessMessage) return false;
    const comparedText = line.includes(routineMark)
      ? message
      : line.replace(line.includes(warningMark) ? contextFields : processFields, '');
    // While the stack starts, messages that every process logs about the catalog are shown once.
    const key = this.#isMuted ? comparedText : `${part} ${comparedText}`;
    const isKnown = this.#messagesThisSecond.has(key);
    this.#messagesThisSecond.add(key);
    return isKnown;
  }

  #endSecond(): void {
    this.#hasTimer = false;
    if (this.#isMuted) return;
    if (this.#skipped > 0) {
      const text = `… and ${countLines(this.#skipped, this.#skippedWarnings)}, which are in the logs`;
      this.print(this.paint('dim', `         ${text}`));
    }
    this.#beginSecond();
  }

  #beginSecond(): void {
    this.#shownThisSecond = 0;
    this.#warnedThisSecond = 0;
    this.#skipped = 0;
    this.#skippedWarnings = 0;
    this.#messagesThisSecond.clear();
  }
}

function countLines(lines: number, warnings: number): string {
  if (lines === warnings) return `${lines} more ${lines === 1 ? 'warning' : 'warnings'}`;
  const warningsPart =
    warnings === 0 ? '' : `, ${warnings} of them ${warnings === 1 ? 'a warning' : 'warnings'}`;
  return `${lines} more ${lines === 1 ? 'line' : 'lines'}${warningsPart}`;
}

export function formatMs(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

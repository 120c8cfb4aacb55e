import {
  accessMessage,
  createPaint,
  formatLogLine,
  formatPartName,
  formatTime,
  type Paint,
} from '../../shared/platform/runtime/format-log-line.ts';
import { SkippedLines } from './skipped-lines.ts';

/** The destination of lines: the process's stdout, or a list in tests. */
export interface LineSink {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

const maxLinesPerSecond = 40;
/** In addition to the lines above. */
const maxWarningsPerSecond = 20;
/** A start may take long, and its messages are known until its end. */
const maxKnownMessages = 10_000;
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
  readonly #skipped = new SkippedLines();
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
    this.#endSecond();
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
    // While the stack starts, api and worker log the same warnings. Each is shown or counted once.
    if (this.#isMuted && this.#isRepeated(part, line)) return;
    if (isOverLimit || (!this.#isMuted && this.#isRepeated(part, line))) {
      if (isWarning) this.#skipped.addWarning(line);
      else this.#skipped.addLine();
      this.#startSecond();
      return;
    }
    const text = formatLogLine(part, line, this.paint);
    if (text === null) return;
    this.print(text);
    this.#shownThisSecond += 1;
    if (isWarning) this.#warnedThisSecond += 1;
    this.#startSecond();
  }

  #startSecond(): void {
    if (!this.#hasTimer) setTimeout(() => this.#onSecond(), 1_000).unref();
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
    if (this.#messagesThisSecond.size < maxKnownMessages) this.#messagesThisSecond.add(key);
    return isKnown;
  }

  #onSecond(): void {
    this.#hasTimer = false;
    // The limits apply to the whole start.
    if (this.#isMuted) this.#printSkipped();
    else this.#endSecond();
  }

  #printSkipped(): void {
    const skipped = this.#skipped.describe();
    if (skipped !== null) this.print(this.paint('dim', `         ${skipped}`));
    this.#skipped.clear();
  }

  #endSecond(): void {
    this.#printSkipped();
    this.#shownThisSecond = 0;
    this.#warnedThisSecond = 0;
    this.#messagesThisSecond.clear();
  }
}

export function formatMs(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

import type { ConsoleOutput } from './console-output.ts';
import type { LogFileOptions } from './log-file.ts';

/** Prints one message when any log starts to lose lines, and one when all logs are written again. */
export class LostLines implements LogFileOptions {
  readonly #output: Pick<ConsoleOutput, 'printEvent'>;
  #failingLogs = 0;
  #lines = 0;

  constructor(output: Pick<ConsoleOutput, 'printEvent'>) {
    this.#output = output;
  }

  readonly onLost = (error: Error): void => {
    this.#failingLogs += 1;
    if (this.#failingLogs > 1) return;
    this.#lines = 0;
    this.#output.printEvent(
      'logs',
      `cannot be written; lines are lost until writing works again (${error.message})`,
      'yellow',
    );
  };

  readonly onRestored = (lines: number): void => {
    this.#failingLogs -= 1;
    this.#lines += lines;
    if (this.#failingLogs > 0) return;
    const were = this.#lines === 1 ? 'line was' : 'lines were';
    this.#output.printEvent('logs', `are written again; ${this.#lines} ${were} lost`, 'green');
  };
}

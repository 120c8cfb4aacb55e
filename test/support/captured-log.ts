import { pino, type Logger } from 'pino';
import { waitFor } from './wait-for.ts';

export type LogLine = Readonly<Record<string, unknown>>;

export interface CapturedLog {
  readonly log: Logger;
  /** All lines so far. */
  readonly lines: readonly LogLine[];
  /** Resolves with the first matching line, waiting until there is one. */
  readonly waitForLine: (matches?: (line: LogLine) => boolean) => Promise<LogLine>;
}

/** A log whose lines a test can inspect. */
export function captureLog(level = 'info'): CapturedLog {
  const lines: LogLine[] = [];
  return {
    log: pino({ level }, { write: (line) => lines.push(JSON.parse(line) as LogLine) }),
    lines,
    waitForLine: (matches = () => true) => waitFor('a log line', () => lines.find(matches)),
  };
}

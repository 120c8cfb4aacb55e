import { pino, type Logger } from 'pino';
import { waitFor } from './wait-for.ts';

export type LogLine = Readonly<Record<string, unknown>>;

export interface CapturedLog {
  readonly log: Logger;
  /** All lines so far. */
  readonly lines: readonly LogLine[];
  /** Resolves with the first line that is wanted, once it is there. */
  readonly waitForLine: (isWanted?: (line: LogLine) => boolean) => Promise<LogLine>;
}

/** A log whose lines a test looks at. */
export function captureLog(level = 'info'): CapturedLog {
  const lines: LogLine[] = [];
  return {
    log: pino({ level }, { write: (line) => lines.push(JSON.parse(line) as LogLine) }),
    lines,
    waitForLine: (isWanted = () => true) => waitFor('a log line', () => lines.find(isWanted)),
  };
}

import { isatty } from 'node:tty';
import { pino, type Logger, type LoggerOptions } from 'pino';
import { createPaint, formatLogLine } from './format-log-line.ts';
import { LogDestination } from './log-destination.ts';

export type { Logger };

/** `json`: one JSON object a line, for programs. `pretty`: for people. */
export type LogFormat = 'json' | 'pretty';

/** Headers and fields that contain secrets, wherever they appear in a logged object. */
const secretPaths = [
  'authorization',
  'apiKey',
  'api_key',
  'masterKey',
  'headers.authorization',
  'headers.cookie',
  // ioredis stores the arguments of a failed Redis command on its error.
  'err.command.args',
  // The error of the last node of a Cluster, which may have rejected the password.
  'err.lastNodeError.command.args',
];

function describeLines(role: string, level: string): LoggerOptions {
  return {
    level,
    base: { role, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: secretPaths, censor: '[secret]' },
  };
}

const destinations = new Map<1 | 2, LogDestination>();

/** All loggers of the process share one destination, so that their lines stay in order. */
function openDestination(fd: 1 | 2, maxStandstillMs?: number): LogDestination {
  const known = destinations.get(fd);
  if (known !== undefined) return known;
  const opened = new LogDestination(fd, { maxStandstillMs });
  process.on('exit', () => opened.flushSync());
  destinations.set(fd, opened);
  return opened;
}

/** Returns the destination of a logger's JSON lines. It writes them unchanged, or as text for people. */
function openOutput(
  role: string,
  { fd, format = null, maxStandstillMs }: FatalLoggerOptions,
): Pick<LogDestination, 'write' | 'flushSync'> {
  const destination = openDestination(fd, maxStandstillMs);
  const isTerminal = isatty(fd);
  if ((format ?? (isTerminal ? 'pretty' : 'json')) === 'json') return destination;
  const paint = createPaint(isTerminal);
  return {
    write(line) {
      const text = formatLogLine(role, line, paint, { isComplete: true });
      if (text !== null) destination.write(`${text}\n`);
    },
    flushSync: () => destination.flushSync(),
  };
}

/**
 * Creates a logger that writes to stdout.
 * @param format null means `pretty` at a terminal, and `json` otherwise
 */
export function createLogger(role: string, level: string, format: LogFormat | null = null): Logger {
  const log = pino(describeLines(role, level), openOutput(role, { fd: 1, format }));
  openDestination(1).onLost((lines) => log.warn({ lines }, 'log lines lost'));
  return log;
}

/** Creates a logger whose JSON lines go to `write`. */
export function createLoggerTo(write: (line: string) => void, role: string, level: string): Logger {
  return pino(describeLines(role, level), { write });
}

/** Writes whole lines of another process to stdout, among the lines of this process's loggers. */
export function writeLogLines(lines: string): void {
  openDestination(1).write(lines);
}

export interface FatalLoggerOptions {
  /** Stdout, or stderr for programs that print their results to stdout. */
  readonly fd: 1 | 2;
  /** As for `createLogger`, for the terminal that `fd` may be. */
  readonly format?: LogFormat | null | undefined;
  /** How long the exiting process waits for a log reader that reads nothing; 3 s by default. */
  readonly maxStandstillMs?: number | undefined;
}

/**
 * Creates a logger for the last line of a process, at any LOG_LEVEL. It writes that line and all earlier ones
 * synchronously.
 */
export function createFatalLogger(role: string, options: FatalLoggerOptions): Pick<Logger, 'fatal'> {
  const output = openOutput(role, options);
  return pino(describeLines(role, 'fatal'), {
    write(line) {
      // Flush first: the buffer may have no space left for this line.
      output.flushSync();
      output.write(line);
      output.flushSync();
    },
  });
}

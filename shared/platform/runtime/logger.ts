import { pino, type Logger, type LoggerOptions } from 'pino';
import { LogDestination } from './log-destination.ts';

export type { Logger };

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

/** Creates a logger that writes JSON lines to stdout. `npm start` or the operator's tools format them. */
export function createLogger(role: string, level: string): Logger {
  const destination = openDestination(1);
  const log = pino(describeLines(role, level), destination);
  destination.onLost((lines) => log.warn({ lines }, 'log lines lost'));
  return log;
}

/** Creates a logger whose JSON lines go to `write`. */
export function createLoggerTo(write: (line: string) => void, role: string, level: string): Logger {
  return pino(describeLines(role, level), { write });
}

/** Writes lines of other processes to stdout, in order with the lines of the loggers. */
export function createLineWriter(): (line: string) => void {
  const destination = openDestination(1);
  return (line) => destination.write(line);
}

/**
 * Creates a logger for the last line of a process, at any LOG_LEVEL. It writes that line and all earlier ones
 * synchronously.
 */
export function createFatalLogger(role: string, fd: 1 | 2, maxStandstillMs?: number): Pick<Logger, 'fatal'> {
  const destination = openDestination(fd, maxStandstillMs);
  return pino(describeLines(role, 'fatal'), {
    write(line) {
      // Flush first: the buffer may have no space left for this line.
      destination.flushSync();
      destination.write(line);
      destination.flushSync();
    },
  });
}

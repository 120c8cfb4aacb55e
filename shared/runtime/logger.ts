import { pino, type Logger, type LoggerOptions } from 'pino';
import { LogDestination } from './log-destination.ts';

export type { Logger };

/** Headers and fields that carry a secret, wherever in a logged object they stand. */
const secretPaths = [
  'authorization',
  'apiKey',
  'api_key',
  'masterKey',
  'headers.authorization',
  'headers.cookie',
  // What a command of Redis was given, as ioredis notes it on the error of its refusal.
  'err.command.args',
  // Of a Cluster's last node, which may have refused the password.
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

/** One for all loggers of the process, so that their lines keep their order. */
function openDestination(fd: 1 | 2, maxStandstillMs?: number): LogDestination {
  const known = destinations.get(fd);
  if (known !== undefined) return known;
  const opened = new LogDestination(fd, { maxStandstillMs });
  process.on('exit', () => opened.flushSync());
  destinations.set(fd, opened);
  return opened;
}

/** JSON lines on stdout; an operator's tools, or `npm start`, make them readable. */
export function createLogger(role: string, level: string): Logger {
  const destination = openDestination(1);
  const log = pino(describeLines(role, level), destination);
  destination.onLost((lines) => log.warn({ lines }, 'log lines were lost'));
  return log;
}

/** For the last line of a process, whatever LOG_LEVEL is: what was logged before it and the line itself are written first. */
export function createFatalLogger(role: string, fd: 1 | 2, maxStandstillMs?: number): Pick<Logger, 'fatal'> {
  const destination = openDestination(fd, maxStandstillMs);
  return pino(describeLines(role, 'fatal'), {
    write(line) {
      // There may be no place for it behind what waits.
      destination.flushSync();
      destination.write(line);
      destination.flushSync();
    },
  });
}

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

const stdout = 1;
let shared: LogDestination | null = null;

/** One for all loggers of the process, so that their lines keep their order. */
function openStdout(onRestored: (lines: number) => void): LogDestination {
  if (shared !== null) return shared;
  const opened = new LogDestination(stdout, { onRestored });
  process.on('exit', () => opened.flushSync());
  shared = opened;
  return opened;
}

/** JSON lines on stdout; an operator's tools, or `npm start`, make them readable. */
export function createLogger(role: string, level: string): Logger {
  const log: Logger = pino(
    describeLines(role, level),
    openStdout((lines) => log.warn({ lines }, 'log lines were lost')),
  );
  return log;
}

/** For the last line of a process, whatever LOG_LEVEL is: it is written when the call returns. */
export function createFatalLogger(role: string, fd: number): Pick<Logger, 'fatal'> {
  return pino(describeLines(role, 'fatal'), pino.destination({ dest: fd, sync: true }));
}

import { pino, type Logger, type LoggerOptions } from 'pino';

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
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: secretPaths, censor: '[secret]' },
  };
}

/** JSON lines on stdout; an operator's tools, or `npm start`, make them readable. */
export function createLogger(role: string, level: string): Logger {
  return pino(describeLines(role, level));
}

/** For the last line of a process, whatever LOG_LEVEL is: it is written when the call returns. */
export function createFatalLogger(role: string, fd: number): Pick<Logger, 'fatal'> {
  return pino(describeLines(role, 'fatal'), pino.destination({ dest: fd, sync: true }));
}

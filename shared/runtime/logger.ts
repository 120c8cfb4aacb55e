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

/** Kept of lines that cannot be written: the disk is full, or the reader of a pipe stands still. */
const maxPendingBytes = 16_000_000;

/**
 * JSON lines on stdout; an operator's tools, or `npm start`, make them readable. What cannot be written waits, within a
 * bound, and never ends the process; where lines were lost, the log says how many once it can.
 */
export function createLogger(role: string, level: string): Logger {
  const destination = pino.destination({ dest: 1, sync: false, maxLength: maxPendingBytes });
  const log = pino(describeLines(role, level), destination);
  let isStuck = false;
  let lost = 0;
  destination.on('drop', () => {
    lost += 1;
  });
  // It is tried again with the next line.
  destination.on('error', () => {
    isStuck = true;
  });
  destination.on('write', () => {
    isStuck = false;
  });
  // All that waited is written: there is room for one more.
  destination.on('drain', () => {
    if (lost === 0) return;
    const lines = lost;
    lost = 0;
    log.warn({ lines }, 'log lines were lost');
  });
  const flush = destination.flushSync.bind(destination);
  // At the exit it would try for ever, and the process with it.
  destination.flushSync = () => {
    if (!isStuck) flush();
  };
  return log;
}

/** For the last line of a process, whatever LOG_LEVEL is: it is written when the call returns. */
export function createFatalLogger(role: string, fd: number): Pick<Logger, 'fatal'> {
  return pino(describeLines(role, 'fatal'), pino.destination({ dest: fd, sync: true }));
}

import { exitOnUncaught } from './exit-on-uncaught.ts';
import { createFatalLogger } from './logger.ts';

export interface UncaughtLogOptions {
  /** The file descriptor of the log: 1 (stdout), or 2 (stderr) for programs that print their results to stdout. */
  readonly fd: 1 | 2;
  /** How long the exiting process waits for a log reader that reads nothing; 3 s by default. */
  readonly maxStandstillMs?: number;
}

/**
 * Like `exitOnUncaught`, reporting with one `fatal` log line.
 * @param role the process's name in the log
 */
export function logUncaught(role: string, { fd, maxStandstillMs }: UncaughtLogOptions): void {
  const log = createFatalLogger(role, fd, maxStandstillMs);
  exitOnUncaught((err, what) => log.fatal({ err }, what));
}

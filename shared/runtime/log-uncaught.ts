import { exitOnUncaught } from './exit-on-uncaught.ts';
import { createFatalLogger } from './logger.ts';

/**
 * Like `exitOnUncaught`, reporting with one `fatal` log line.
 * @param role the process's name in the log
 * @param fd where the log goes: stderr for programs that print their results to stdout
 * @param maxStandstillMs how long the exiting process waits for a log reader that reads nothing; 3 s by default
 */
export function logUncaught(role: string, fd: 1 | 2, maxStandstillMs?: number): void {
  const log = createFatalLogger(role, fd, maxStandstillMs);
  exitOnUncaught((err, what) => log.fatal({ err }, what));
}

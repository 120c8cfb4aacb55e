import { exitOnUncaught } from './exit-on-uncaught.ts';
import { createFatalLogger } from './logger.ts';

/**
 * As `exitOnUncaught`, with one `fatal` line of the log.
 * @param role as the log names the process
 * @param fd where its log goes: stderr for programs whose stdout is for their answers
 * @param maxStandstillMs how long the end of the process waits for a reader of the log that takes nothing; 3 s unless set
 */
export function logUncaught(role: string, fd: 1 | 2, maxStandstillMs?: number): void {
  const log = createFatalLogger(role, fd, maxStandstillMs);
  exitOnUncaught((err, what) => log.fatal({ err }, what));
}

import { exitOnUncaught } from './exit-on-uncaught.ts';
import { createFatalLogger } from './logger.ts';

/**
 * As `exitOnUncaught`, with one `fatal` line of the log.
 * @param role as the log names the process
 * @param fd where its log goes: stderr for programs whose stdout is for their answers
 */
export function logUncaught(role: string, fd: 1 | 2): void {
  const log = createFatalLogger(role, fd);
  exitOnUncaught((err, what) => log.fatal({ err }, what));
}

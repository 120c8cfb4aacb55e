import { exitOnUncaught } from './exit-on-uncaught.ts';
import { createFatalLogger, type FatalLoggerOptions } from './logger.ts';

/**
 * Like `exitOnUncaught`, reporting with one `fatal` log line.
 * @param role the process's name in the log
 */
export function logUncaught(role: string, options: FatalLoggerOptions): void {
  const log = createFatalLogger(role, options);
  exitOnUncaught((err, what) => log.fatal({ err }, what));
}

// decision 0046
import type { Logger } from './logger.ts';

/**
 * Runs work in the background and logs a failure, which would otherwise crash the process as an unhandled rejection.
 * @param name name of the work in the log, such as `ban lookup`
 */
export function runInBackground(work: Promise<unknown>, name: string, log: Pick<Logger, 'error'>): void {
  work.catch((error: unknown) => log.error({ err: error }, `${name} failed`));
}

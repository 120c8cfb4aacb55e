import type { Logger } from './logger.ts';

/**
 * Runs work in the background and logs a failure. Unhandled, it would end the process.
 * @param what name of the work in the log, such as `ban look-up`
 */
export function runInBackground(work: Promise<unknown>, what: string, log: Pick<Logger, 'error'>): void {
  work.catch((error: unknown) => log.error({ err: error }, `${what} failed`));
}

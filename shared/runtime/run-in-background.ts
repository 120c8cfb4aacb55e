import type { Logger } from './logger.ts';

/**
 * Lets work go on that nobody waits for. If it fails, the failure is logged and ends nothing: without a handler it would
 * end the process.
 * @param what as the log names it, such as `ban look-up`
 */
export function runInBackground(work: Promise<unknown>, what: string, log: Pick<Logger, 'error'>): void {
  work.catch((error: unknown) => log.error({ err: error }, `${what} failed`));
}

import type { Logger } from './logger.ts';

/**
 * Leaves work to run in the background. A failure is logged and goes no further; unhandled, it would end the process.
 * @param what as the log names it, such as `ban look-up`
 */
export function runInBackground(work: Promise<unknown>, what: string, log: Pick<Logger, 'error'>): void {
  work.catch((error: unknown) => log.error({ err: error }, `${what} failed`));
}

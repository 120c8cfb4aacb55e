import { inspect } from 'node:util';

/**
 * Ends the process with exit code 1 after reporting the first uncaught error. The state of the process is unknown by
 * then, so it settles nothing and hands nothing back: other processes take over as after a kill.
 * @param report logs the error. If it returns a promise, the process ends once that settles.
 */
export function exitOnUncaught(report: (error: Error, what: string) => Promise<unknown> | void): void {
  const exit = (): void => process.exit(1);
  // Node raises unhandled rejections as uncaught exceptions, too.
  process.on('uncaughtException', (thrown: unknown, origin) => {
    try {
      const cause = thrown instanceof Error ? thrown : new Error(`thrown: ${inspect(thrown)}`);
      const reporting = report(
        cause,
        origin === 'unhandledRejection' ? 'unhandled rejection' : 'uncaught exception',
      );
      if (reporting === undefined) exit();
      else reporting.then(exit, exit);
    } catch {
      // Exit even if the report fails.
      exit();
    }
  });
}

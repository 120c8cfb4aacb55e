import { inspect } from 'node:util';

/**
 * Exits with code 1 after reporting the first uncaught error. The state of the process is unknown by then, so it
 * neither settles nor hands back any work: other processes take over as if it had been killed.
 * @param report logs the error. If it returns a promise, the process exits once that settles.
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

import { inspect } from 'node:util';

/**
 * Ends the process with exit code 1 at the first error that nothing handles, once it is reported. Nothing knows what the
 * process holds by then, so it settles nothing and hands nothing back: others take over as after a kill.
 * @param report says why; where it returns a promise, the process ends when that is settled
 */
export function exitOnUncaught(report: (error: Error, what: string) => Promise<unknown> | void): void {
  const exit = (): void => process.exit(1);
  // Node raises a rejection that nothing handles as an exception, too.
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
      // What cannot be said is no reason to go on.
      exit();
    }
  });
}

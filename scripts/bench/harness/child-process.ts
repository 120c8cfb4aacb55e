import { logUncaught } from '../../../shared/platform/runtime/log-uncaught.ts';

/** Runs the plan that the parent of this process sends; an error ends the process. */
export function runPlanOfParent(role: string, run: (plan: unknown) => Promise<void>): void {
  logUncaught(role, { fd: 2 });
  process.once('message', (plan) => {
    run(plan).catch((error: unknown) => {
      console.error(error);
      process.exit(1);
    });
  });
  // If the parent is gone, the result is not needed.
  process.once('disconnect', () => process.exit(1));
}

export function reportToParent(message: object | string, onSent: () => void = () => undefined): void {
  process.send!(message, onSent);
}

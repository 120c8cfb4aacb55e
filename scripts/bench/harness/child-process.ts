import { logUncaught } from '../../../shared/platform/runtime/log-uncaught.ts';

/** Runs the plan that the parent of this process sends; an error ends the process. */
export function runPlanOfParent<Plan>(role: string, run: (plan: Plan) => Promise<void>): void {
  logUncaught(role, { fd: 2 });
  process.once('message', (plan) => {
    run(plan as Plan).catch((error: unknown) => {
      console.error(error);
      process.exit(1);
    });
  });
  // If the parent is gone, the result is not needed.
  process.once('disconnect', () => process.exit(1));
}

export function reportToParent<Message>(message: Message, onSent: () => void = () => undefined): void {
  process.send!(message, onSent);
}

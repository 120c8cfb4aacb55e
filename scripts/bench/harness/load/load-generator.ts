import { reportToParent, runPlanOfParent } from '../child-process.ts';
import type { LoadMessage, LoadPlan } from './load-plan.ts';
import { Load } from './load.ts';

/** The load process: executes a plan, replies with the result and exits. */
runPlanOfParent<LoadPlan>('bench-load', async (plan) => {
  const result = await new Load(plan).run();
  reportToParent<LoadMessage>({ kind: 'result', result }, () => process.exit(0));
});

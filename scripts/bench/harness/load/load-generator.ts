import { reportToParent, runPlanOfParent } from '../child-process.ts';
import type { LoadMessage, LoadPlan } from './load-plan.ts';
import { Load } from './load.ts';

/** The load process: executes a plan, replies with the result and exits. */
runPlanOfParent('bench-load', async (plan) => {
  const result = await new Load(plan as LoadPlan).run();
  reportToParent({ kind: 'result', result } satisfies LoadMessage, () => process.exit(0));
});

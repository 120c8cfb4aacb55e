import { reportToParent, runPlanOfParent } from '../../harness/child-process.ts';
import type { LoadPlan } from '../../harness/load/load-plan.ts';
import { Load } from '../../harness/load/load.ts';
import { readJobId } from '../../harness/load/response-checks.ts';
import type { JobsMessage } from './jobs-plan.ts';
import { JobLookUps } from './look-up-jobs.ts';

/** The load process: places the jobs of its plan, and looks them up until the parent stops it. */
runPlanOfParent('bench-jobs', async (message) => {
  const plan = message as LoadPlan;
  const lookUps = new JobLookUps(plan);
  const stopped = new Promise<void>((resolve) => {
    process.on('message', (order) => {
      if (order === 'running') lookUps.phase = 'running';
      else resolve();
    });
  });
  const load = new Load(plan, (response, jobs) => lookUps.add(readJobId(response)!, jobs));
  reportToParent({ kind: 'result', result: await load.run() } satisfies JobsMessage);
  await stopped;
  const report: JobsMessage = { kind: 'looked-up', lookUps: await lookUps.end() };
  reportToParent(report, () => process.exit(0));
});

import { logUncaught } from '../../../shared/platform/runtime/log-uncaught.ts';
import { JobLookUps } from './look-up-jobs.ts';
import { placeJobs } from './place-jobs.ts';
import type { JobsMessage, JobsPlan } from './scenario.ts';

logUncaught('bench-jobs', { fd: 2 });

const progressEvery = 1_000;

function send(message: JobsMessage, onSent: () => void = () => undefined): void {
  process.send!(message, onSent);
}

/** The load process: places the jobs of its plan, and looks them up until the parent stops it. */
async function run(plan: JobsPlan): Promise<void> {
  const lookUps = new JobLookUps(plan);
  const stopped = new Promise<void>((resolve) => {
    process.on('message', (message) => {
      if (message === 'running') lookUps.phase = 'running';
      else resolve();
    });
  });
  const placed = await placeJobs({
    ...plan,
    onPlaced: (id, jobs) => {
      lookUps.add(id, jobs);
      if (jobs % progressEvery === 0) send({ kind: 'progress', jobs });
    },
  });
  send({ kind: 'placed', placed });
  await stopped;
  send({ kind: 'looked-up', lookUps: await lookUps.end() }, () => process.exit(0));
}

process.once('message', (plan) => {
  run(plan as JobsPlan).catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
});
// If the parent is gone, the result is not needed.
process.once('disconnect', () => process.exit(1));

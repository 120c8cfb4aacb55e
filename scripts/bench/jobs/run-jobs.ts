import { mkdirSync } from 'node:fs';
import type { Options } from '../options.ts';
import type { Progress } from '../progress.ts';
import type { Workshop } from '../workshop.ts';
import { measureJobs } from './measure.ts';
import { formatJobs } from './report.ts';
import { jobCallers, type JobsRun } from './scenario.ts';

const announcedPercent = 10;

/** Measures jobs on a separate stack, whose Redis contains nothing else. Returns null if it was not requested. */
export async function runJobs(
  options: Options,
  workshop: Workshop,
  progress: Progress,
  cpus: number,
): Promise<JobsRun | null> {
  if (!options.measuresJobs) return null;
  const { profileDir } = options;
  if (profileDir !== null) mkdirSync(profileDir, { recursive: true });
  progress.show('jobs, starting Redis, MongoDB, S3, vendors, api and worker');
  let announced = '';
  const run = await workshop.within(['api', 'worker'], (programs, dir) =>
    measureJobs({
      ...options,
      programs,
      dir,
      cpus,
      callers: options.callers ?? jobCallers,
      onStep: (text) => progress.show(`jobs, ${text}`),
      onShare: (phase, share) => {
        const percent = Math.floor((share * 100) / announcedPercent) * announcedPercent;
        const text = `jobs, ${phase}, ${percent} % of ${options.jobs}`;
        if (percent === 0 || text === announced) return;
        announced = text;
        progress.show(text);
      },
    }),
  );
  progress.clear();
  console.log(formatJobs(run));
  return run;
}

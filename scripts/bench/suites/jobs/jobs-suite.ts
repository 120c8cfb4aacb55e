import type { Scenario, Suite } from '../../harness/suite.ts';
import { jobCallers, jobsTitle, maxJobs } from './jobs-plan.ts';
import { measureJobs } from './measure-jobs.ts';
import { formatJobs, listFaults } from './report.ts';

/** Durable jobs, placed and then run, on a separate stack, whose Redis contains nothing else. */
export const jobsSuite: Suite<Scenario, 'jobs'> = {
  name: 'jobs',
  scenarios: [{ name: 'jobs', title: jobsTitle }],
  options: {
    jobs: {
      default: 100_000,
      max: maxJobs,
      help: `number of durable jobs that wait at the same time, at most ${maxJobs}`,
    },
  },
  runsOnlyByName: true,

  async run({ settings, counts, output, within }) {
    output.show('jobs, starting Redis, MongoDB, S3, vendors, api and worker');
    const { jobs } = counts;
    const run = await within((programs) =>
      measureJobs({
        programs,
        settings,
        jobs,
        callers: settings.callers ?? jobCallers,
        onStep: (text) => output.show(`jobs, ${text}`),
        onShare: (phase, share) => output.showShare(`jobs, ${phase}`, share, String(jobs)),
      }),
    );
    output.print(formatJobs(run));
    return { json: run, faults: listFaults(run).length };
  },
};

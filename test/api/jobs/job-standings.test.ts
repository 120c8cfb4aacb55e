import test from 'ava';
import { JobStandings } from '../../../api/jobs/job-standings.ts';
import { describeNewJob, type JobRecord } from '../../../shared/work/jobs/job-record.ts';

const hourMs = 60 * 60_000;

test("the running time of a job is measured with the clock that timed its transitions, even if the process's clock differs", async (t) => {
  const outlook = {
    virtualTime: 0,
    accounts: [],
    running: 1,
    runningMs: [1_000],
    ended: [],
    serviceMs: 10_000,
  };
  const standings = new JobStandings({ recordPositions: async () => [] }, { get: async () => outlook });
  const newJob = describeNewJob(
    {
      id: 'job',
      accountId: 'account',
      queue: 'chat',
      model: 'model',
      operation: 'chat.completions',
      timeoutMs: 60_000,
      format: null,
      webhookUrl: null,
    },
    0,
    60_000,
  );
  for (const startedMs of [Date.now() - hourMs, Date.now() + hourMs]) {
    const transitions = [...newJob.transitions, { status: 'active', atMs: startedMs } as const];
    const job: JobRecord = { ...newJob, status: 'active', transitions };
    const { etaSeconds } = await standings.find({ job, rank: null, nowMs: startedMs + 1_000 });
    t.is(etaSeconds, 9);
  }
});

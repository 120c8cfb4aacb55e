import test from 'ava';
import type { JobsRun, SingleJobs } from '../../../../../scripts/bench/suites/jobs/jobs-plan.ts';
import { formatJobs, listFaults } from '../../../../../scripts/bench/suites/jobs/report.ts';
import { sumUpSingleJobs } from '../../../../../scripts/bench/suites/jobs/single-jobs.ts';
import { surveyJobs } from '../../../../../scripts/bench/suites/jobs/survey.ts';
import { redisKeys } from '../../../../../shared/platform/redis/redis-keys.ts';
import { useRedis } from '../../../../support/use-redis.ts';

/** Tests the report of the durable jobs bench for given measurements. */

const one: SingleJobs = {
  probes: 3,
  waitMs: { p50: 4, most: 9 },
  doneMs: { p50: 6, most: 12 },
  startedBetween: { p50: 2, most: 5 },
};

const cpu = { cpuMsPerJob: { api: 0.5, redis: 0.1 }, othersShare: 0.02 };
const waits = (p99Ms: number) => ({ probes: 100, p50Ms: 2, p99Ms, failures: {} });

const run: JobsRun = {
  jobs: 1_000,
  callers: 8,
  placed: { jobs: 1_000, measuredMs: 2_000, p50Ms: 10, p99Ms: 30, errors: {}, ...cpu },
  ran: { measuredMs: 4_000, jobsPerSecond: 250, ...cpu },
  memory: { waiting: 2_000.4, body: 800, ended: 1_000, answer: 300 },
  lookUps: { placing: waits(19.9), running: waits(20) },
  single: { alone: one, behind: { ...one, waitMs: { p50: 8, most: 20 } } },
  retaken: 0,
  money: { charges: 1_000, behindMs: 12, faults: [] },
  faults: [],
};

test('the table shows rates, sizes, the checked look-ups and the wait of a single job', (t) => {
  const text = formatJobs(run);
  t.regex(text, /^ {2}in +500 +10\.0 +30\.0 +0\.500 +0\.100 +2 %$/m);
  t.regex(text, /^ {2}out +250 /m);
  t.regex(text, /0\.50× {3}jobs finished per job placed/);
  t.regex(text, /2000 B {3}of Redis per waiting job, including 800 B for its body/);
  t.regex(text, /19\.9 ms {3}p99 while jobs are placed, below 20 ms/);
  t.regex(text, /20\.0 ms {3}p99 while jobs run, NOT below 20 ms/);
  t.regex(text, /2\.0× {3}its wait alone; jobs started in between: p50 2, max 5/);
  t.regex(text, /1000 charges for 1000 jobs · the ledger was 12 ms behind/);
  t.notRegex(text, /ERROR/);
});

test('failed look-ups and problems with jobs or money are counted as errors, slow look-ups are not', (t) => {
  t.deepEqual(listFaults(run), []);
  const failing: JobsRun = {
    ...run,
    lookUps: { ...run.lookUps, running: { ...waits(5), failures: { 'GET of a job: HTTP 500': 2 } } },
    money: { ...run.money, faults: ['999 charges in the ledger for 1000 right answers'] },
    faults: ['1 jobs failed (upstream_error)'],
  };
  t.is(listFaults(failing).length, 3);
  t.regex(formatJobs(failing), /!!! ERROR {2}2 × GET of a job: HTTP 500/);
});

test('if all jobs finished before a single job could be placed behind them, the table shows none', (t) => {
  const text = formatJobs({ ...run, single: { alone: one, behind: sumUpSingleJobs([], []) } });
  t.regex(text, /none {3}behind the others: all jobs finished before one could be placed/);
});

const redisOf = useRedis(test);

test('the check covers the end and attempts of every job record, and counts jobs that started while a single job waited', async (t) => {
  const redis = redisOf();
  const accountId = 'surveyed';
  const place = async (id: string, at: number, fields: Readonly<Record<string, string>>) => {
    await redis.zadd(redisKeys.jobsList(accountId, 'all'), at, id);
    await redis.hset(redisKeys.job(accountId, id), { at: String(at), n: '1', ...fields });
  };
  await place('first', 1, { st: 's', log: 'q1 a10 s20' });
  await place('second', 2, { st: 's', n: '2', log: 'q2 a15 q16 a30 s40' });
  await place('third', 3, { st: 'f', code: 'upstream_error', log: 'q3 a31 f50' });
  await place('fourth', 4, { st: 'a', log: 'q4 a60' });
  await redis.zadd(redisKeys.jobsList(accountId, 'all'), 5, 'fifth');
  const windows = [
    { fromMs: 10, untilMs: 15 },
    { fromMs: 16, untilMs: 70 },
  ];
  t.deepEqual(await surveyJobs(redis, accountId, windows), {
    jobs: 5,
    firstStartAtMs: 10,
    lastEndAtMs: 50,
    startedWithin: [2, 2],
    retaken: 1,
    faults: ['1 jobs failed (upstream_error)', '1 jobs active', '1 jobs with 0 ends', '1 jobs lost'],
  });
});

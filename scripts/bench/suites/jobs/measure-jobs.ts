import { setTimeout as delay } from 'node:timers/promises';
import { defaultJobSettings } from '../../../../shared/accounts/job-settings.ts';
import type { RedisClient } from '../../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';
import { divideCpu, startCpuPhase, type CpuUse } from '../../harness/clocks/cpu-clock.ts';
import type { LoadPlan } from '../../harness/load/load-plan.ts';
import type { Programs } from '../../harness/programs.ts';
import { allowJobs, createAccount } from '../../harness/stack/accounts.ts';
import { startStandardStack, type StandardStack } from '../../harness/stack/standard-stack.ts';
import type { Target } from '../../harness/stack/vendors.ts';
import type { Settings } from '../../harness/suite.ts';
import { JobsLoad } from './jobs-load.ts';
import { jobBody, jobQueue, type JobsPhase, type JobsRun, type PhaseCpu } from './jobs-plan.ts';
import { readMemory } from './redis-memory.ts';
import { runSingleJob, sumUpSingleJobs, type SingleJob } from './single-jobs.ts';
import { surveyJobs } from './survey.ts';

export interface MeasureJobsOptions {
  readonly programs: Programs;
  readonly settings: Settings;
  readonly jobs: number;
  readonly callers: number;
  readonly onStep: (text: string) => void;
  /** @param share of this phase's jobs that are done */
  readonly onShare: (phase: JobsPhase, share: number) => void;
}

const aloneProbes = 10;
const maxProbesBehind = 20;
const probePauseMs = 250;
const pollMs = 10;
/** If no job finishes for this long, the jobs are stuck. */
const stuckMs = 120_000;

/**
 * Places the jobs while there is no worker, so that all of them wait at the same time. Then starts a worker, which runs
 * them. Another account submits single jobs: some before these jobs are placed, and some while they wait.
 */
export async function measureJobs(options: MeasureJobsOptions): Promise<JobsRun> {
  const { programs, settings, onStep } = options;
  const stack = await startStandardStack(programs, settings);
  const { id } = stack.accounts[0]!;
  if (options.jobs > defaultJobSettings.maxQueuedJobs) await allowJobs(stack.env, id, options.jobs);
  const small = await createAccount(stack.env);
  onStep('single jobs of a small account, alone');
  const smallTarget = { ...stack.gateway, apiKeys: [small.apiKey] };
  const alone: SingleJob[] = [];
  for (let i = 0; i < aloneProbes; i++) alone.push(await runSingleJob(smallTarget, i));
  await programs.stopOne(stack.worker);
  return await placeAndRun(options, { stack, accountId: id, smallTarget, alone });
}

interface MeasurementContext {
  readonly stack: StandardStack;
  readonly accountId: string;
  readonly smallTarget: Target;
  readonly alone: readonly SingleJob[];
}

async function placeAndRun(
  options: MeasureJobsOptions,
  { stack, accountId, smallTarget, alone }: MeasurementContext,
): Promise<JobsRun> {
  const { programs, callers, onStep, onShare } = options;
  const { redis, money } = stack;
  const startedAt = new Date();
  const empty = await readMemory(redis, accountId);
  const { worker: _stopped, ...pids } = { ...stack.pids, vendor: stack.vendors.instant.pid };
  onStep(`placing ${options.jobs} jobs`);
  const plan: LoadPlan = {
    ...stack.gateway,
    path: '/v1/embeddings',
    headers: { prefer: 'respond-async' },
    body: jobBody,
    callers: Math.min(callers, options.jobs),
    span: { kind: 'work', requests: options.jobs, rampMs: 0 },
    expects: { kind: 'job' },
    pids,
  };
  const load = new JobsLoad(programs, plan, (jobs) => onShare('placing', jobs / options.jobs));
  const { allAnswers: jobs, measuredMs: placedMs, p50Ms, p99Ms, errors, cpu } = await load.placed();
  const perJob = (use: CpuUse): PhaseCpu => ({
    cpuMsPerJob: divideCpu(use, jobs),
    othersShare: use.othersShare,
  });
  const waiting = await readMemory(redis, accountId);

  onStep(`running ${jobs} jobs`);
  load.enterRunning();
  const endRunning = startCpuPhase({ ...pids, worker: stack.startWorker().pid, load: load.pid });
  const jobsProgress = new JobsProgress(redis, accountId, jobs, (share) => onShare('running', share));
  const singleJobsBehind = probeBehind(jobsProgress, smallTarget);
  await jobsProgress.waitUntilDone();
  const ranCpu = endRunning();
  const singleBehind = await singleJobsBehind;
  const charged = await money.check(startedAt, jobs);
  const ended = await readMemory(redis, accountId);
  const lookUps = await load.end();

  const windows = singleBehind.map(({ createdAtMs, startedAtMs }) => ({
    fromMs: createdAtMs,
    untilMs: startedAtMs,
  }));
  const survey = await surveyJobs(redis, accountId, windows);
  const measuredMs = Math.max(1, survey.lastEndAtMs - survey.firstStartAtMs);
  const bytesPerJob = (bytes: number): number => (bytes - empty.usedBytes) / Math.max(1, jobs);
  const missingJobFaults = survey.jobs === jobs ? [] : [`${survey.jobs} of ${jobs} jobs exist`];
  return {
    jobs,
    callers,
    placed: { jobs, measuredMs: placedMs, p50Ms, p99Ms, errors, ...perJob(cpu) },
    ran: { ...perJob(ranCpu), measuredMs, jobsPerSecond: (jobs * 1_000) / measuredMs },
    memory: {
      waiting: bytesPerJob(waiting.usedBytes),
      body: waiting.bodyBytes,
      ended: bytesPerJob(ended.usedBytes),
      answer: ended.responseBytes,
    },
    lookUps,
    single: {
      alone: sumUpSingleJobs(alone, []),
      behind: sumUpSingleJobs(singleBehind, survey.startedWithin),
    },
    retaken: survey.retaken,
    money: charged,
    faults: [...missingJobFaults, ...survey.faults],
  };
}

/**
 * Once the first job of the large account has started, runs single jobs of the small account, one after another, until
 * no job of the large account waits.
 */
async function probeBehind(jobsProgress: JobsProgress, target: Target): Promise<SingleJob[]> {
  const jobs: SingleJob[] = [];
  await jobsProgress.firstStarted;
  while (jobsProgress.waiting > 0 && jobs.length < maxProbesBehind) {
    jobs.push(await runSingleJob(target, aloneProbes + jobs.length));
    await delay(probePauseMs);
  }
  return jobs;
}

/** Watches the jobs of an account until all have finished. */
class JobsProgress {
  readonly firstStarted: Promise<void>;
  readonly #redis: RedisClient;
  readonly #accountId: string;
  readonly #jobs: number;
  readonly #onShare: (share: number) => void;
  #waiting: number;
  #onFirstStarted: () => void = () => undefined;

  constructor(redis: RedisClient, accountId: string, jobs: number, onShare: (share: number) => void) {
    this.#redis = redis;
    this.#accountId = accountId;
    this.#jobs = jobs;
    this.#onShare = onShare;
    this.#waiting = jobs;
    this.firstStarted = new Promise((resolve) => (this.#onFirstStarted = resolve));
  }

  /** Number of jobs that no worker has started yet. */
  get waiting(): number {
    return this.#waiting;
  }

  /** @throws Error if they do not finish */
  async waitUntilDone(): Promise<void> {
    let remaining = Infinity;
    let changedAtMs = performance.now();
    while (remaining > 0) {
      const previous = remaining;
      remaining = await this.#read();
      if (remaining !== previous) changedAtMs = performance.now();
      if (performance.now() - changedAtMs > stuckMs)
        throw new Error(`${remaining} jobs have not finished, and none did for ${stuckMs / 1_000} s`);
      if (remaining > 0) await delay(pollMs);
    }
    this.#waiting = 0;
    this.#onFirstStarted();
  }

  async #read(): Promise<number> {
    const count = (status: string) => this.#redis.zcard(redisKeys.jobsList(this.#accountId, status));
    const waitingKey = redisKeys.jobsWaiting(this.#accountId, jobQueue.queue, jobQueue.model);
    const [waiting, queued, active] = await Promise.all([
      this.#redis.zcard(waitingKey),
      count('q'),
      count('a'),
    ]);
    this.#waiting = waiting;
    if (queued < this.#jobs) this.#onFirstStarted();
    const remaining = queued + active;
    this.#onShare((this.#jobs - remaining) / Math.max(1, this.#jobs));
    return remaining;
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import { defaultJobSettings } from '../../../shared/accounts/job-settings.ts';
import { createRedis, type RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { loadConfig } from '../../../shared/platform/config/config.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { startBenchStack, type BenchStack, type Target } from '../bench-stack.ts';
import { compareCpu, sampleCpu } from '../cpu-clock.ts';
import { allowJobs, createAccount } from '../gateway-processes.ts';
import { MoneyCheck } from '../money-check.ts';
import type { Programs } from '../programs.ts';
import { JobsLoad } from './jobs-load.ts';
import { readMemory } from './redis-memory.ts';
import { jobQueue, type JobsPhase, type JobsRun, type PhaseCpu } from './scenario.ts';
import { runSingleJob, sumUpSingleJobs, type SingleJob } from './single-jobs.ts';
import { surveyJobs } from './survey.ts';

export interface MeasureJobsOptions {
  readonly programs: Programs;
  readonly dir: string;
  readonly cpus: number;
  readonly logLevel: string;
  readonly profileDir: string | null;
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
  const { programs, dir, logLevel, profileDir, onStep } = options;
  const stack = await startBenchStack({ programs, dir, env: process.env, logLevel, profileDir });
  const redis = createRedis(loadConfig(stack.env).redisUrl, 'commands', createLogger('bench', 'silent'));
  const money = new MoneyCheck(stack.env, stack.accountId);
  try {
    if (options.jobs > defaultJobSettings.maxQueuedJobs)
      await allowJobs(stack.env, stack.accountId, options.jobs);
    const small = await createAccount(stack.env);
    onStep('single jobs of a small account, alone');
    const smallTarget = { ...stack.gateway, apiKey: small.api_key };
    const alone: SingleJob[] = [];
    for (let i = 0; i < aloneProbes; i++) alone.push(await runSingleJob(smallTarget, i));
    await programs.stopOne(stack.worker);
    return await placeAndRun(options, { stack, redis, money, smallTarget, alone });
  } finally {
    redis.disconnect();
    await money.close();
  }
}

interface MeasurementContext {
  readonly stack: BenchStack;
  readonly redis: RedisClient;
  readonly money: MoneyCheck;
  readonly smallTarget: Target;
  readonly alone: readonly SingleJob[];
}

async function placeAndRun(
  options: MeasureJobsOptions,
  { stack, redis, money, smallTarget, alone }: MeasurementContext,
): Promise<JobsRun> {
  const { programs, callers, onStep, onShare } = options;
  const { accountId } = stack;
  const startedAt = new Date();
  const empty = await readMemory(redis, accountId);
  const pids = { vendor: stack.vendorPids.instant, ...stack.pids };
  onStep(`placing ${options.jobs} jobs`);
  const plan = { ...stack.gateway, jobs: options.jobs, callers };
  const load = new JobsLoad(programs, plan, (jobs) => onShare('placing', jobs / options.jobs));
  const placing = new CpuPhase(options.cpus, { ...pids, worker: 0, load: load.pid });
  const placed = await load.placed();
  const placingCpu = placing.end(placed.jobs);
  const waiting = await readMemory(redis, accountId);

  onStep(`running ${placed.jobs} jobs`);
  load.enterRunning();
  const running = new CpuPhase(options.cpus, { ...pids, worker: stack.startWorker().pid, load: load.pid });
  const jobsProgress = new JobsProgress(redis, accountId, placed.jobs, (share) => onShare('running', share));
  const singleJobsBehind = probeBehind(jobsProgress, smallTarget);
  await jobsProgress.waitUntilDone();
  const runningCpu = running.end(placed.jobs);
  const singleBehind = await singleJobsBehind;
  const charged = await money.check(startedAt, placed.jobs);
  const ended = await readMemory(redis, accountId);
  const lookUps = await load.end();

  const windows = singleBehind.map(({ createdAtMs, startedAtMs }) => ({
    fromMs: createdAtMs,
    untilMs: startedAtMs,
  }));
  const survey = await surveyJobs(redis, accountId, windows);
  const measuredMs = Math.max(1, survey.lastEndAtMs - survey.firstStartAtMs);
  const perJob = (bytes: number): number => (bytes - empty.usedBytes) / Math.max(1, placed.jobs);
  const missingJobFaults = survey.jobs === placed.jobs ? [] : [`${survey.jobs} of ${placed.jobs} jobs exist`];
  return {
    jobs: placed.jobs,
    callers,
    placed: { ...placed, ...placingCpu },
    ran: { ...runningCpu, measuredMs, jobsPerSecond: (placed.jobs * 1_000) / measuredMs },
    memory: {
      waiting: perJob(waiting.usedBytes),
      body: waiting.bodyBytes,
      ended: perJob(ended.usedBytes),
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

/** CPU time of one phase. */
class CpuPhase {
  readonly #cpus: number;
  readonly #pids: Readonly<Record<string, number>>;
  readonly #startSample: ReturnType<typeof sampleCpu>;
  readonly #startedAtMs = performance.now();

  /** @param pids 0 for a process that does not exist */
  constructor(cpus: number, pids: Readonly<Record<string, number>>) {
    this.#cpus = cpus;
    this.#pids = Object.fromEntries(Object.entries(pids).filter(([, pid]) => pid !== 0));
    this.#startSample = sampleCpu(this.#pids);
  }

  end(jobs: number): PhaseCpu {
    const { processes, othersMs } = compareCpu(this.#startSample, sampleCpu(this.#pids));
    const entries = Object.entries(processes).map(([name, ms]) => [name, ms / Math.max(1, jobs)]);
    return {
      cpuMsPerJob: Object.fromEntries(entries) as Record<string, number>,
      othersShare: othersMs / ((performance.now() - this.#startedAtMs) * this.#cpus),
    };
  }
}

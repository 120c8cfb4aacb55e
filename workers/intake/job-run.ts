import type { JobLine } from '../../shared/work/jobs/job-line.ts';
import type { JobTurns } from '../../shared/work/jobs/job-turns-store.ts';
import { recordProgress, startJob, type TakenJob } from '../../shared/work/jobs/run-job-scripts.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { retryThroughOutage } from '../../shared/platform/redis/retry-through-outage.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import { JobCancelled, RunReplaced } from '../runs/job-context.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';

/** Progress is reported at most once per interval. */
const progressIntervalMs = 500;

export interface JobRunOptions {
  readonly redis: RedisClient;
  readonly turns: Pick<JobTurns, 'markStarted' | 'markEnded'>;
  readonly log: Logger;
  readonly abort: (reason: Error) => void;
  readonly signal: AbortSignal;
  readonly onBegun: () => void;
}

/** One attempt at a durable job, from when it is taken: whether it has started, and its progress. */
export class JobRun {
  readonly line: JobLine;
  readonly taken: TakenJob;
  readonly #options: JobRunOptions;
  #starting: Promise<void> | null = null;
  #startedAtMs: number | null = null;
  #progress = 0;
  #reportTimer: NodeJS.Timeout | null = null;
  /** Of this machine, so a step of Redis's clock does not change when the job is cancelled. */
  readonly #cancelTimer: NodeJS.Timeout | undefined;

  constructor(line: JobLine, taken: TakenJob, options: JobRunOptions) {
    this.line = line;
    this.taken = taken;
    this.#options = options;
    const { cancelInMs } = taken;
    if (cancelInMs === null) return;
    this.#cancelTimer = setTimeout(() => options.abort(new JobCancelled({ isOverdue: true })), cancelInMs);
  }

  get hasBegun(): boolean {
    return this.#startedAtMs !== null;
  }

  /** Whether it is being ended, because the job is cancelled or another worker has it. */
  get isAborted(): boolean {
    return this.#options.signal.aborted;
  }

  /**
   * Marks the job as active, before a vendor is called.
   * @throws the signal's reason if the job must not run
   */
  async begin(): Promise<void> {
    this.#starting ??= this.#start();
    await this.#starting;
  }

  /** @param done from 0 to 1 */
  progress(done: number): void {
    this.#progress = Math.floor(Math.min(0.99, done) * 100) / 100;
    this.#reportTimer ??= setTimeout(() => this.#reportProgress(), progressIntervalMs);
  }

  #reportProgress(): void {
    const { redis, log } = this.#options;
    this.#reportTimer = null;
    recordProgress(redis, this.taken, this.#progress).catch((error: unknown) => {
      log.debug({ requestId: this.taken.id, err: error }, 'saving the progress of a job failed');
    });
  }

  /** Ends the run, whether it succeeded or failed. */
  end(): void {
    clearTimeout(this.#cancelTimer);
    clearTimeout(this.#reportTimer ?? undefined);
    if (this.#startedAtMs === null) return;
    const { turns, log, signal } = this.#options;
    const serviceMs = signal.aborted ? null : performance.now() - this.#startedAtMs;
    runInBackground(turns.markEnded(this.line, this.taken.id, serviceMs), 'counting a job that ended', log);
  }

  async #start(): Promise<void> {
    const { turns, log, abort, signal, onBegun } = this.#options;
    const outcome = await this.#requestStart();
    if (outcome === 'ok') {
      this.#startedAtMs = performance.now();
      onBegun();
      runInBackground(
        turns.markStarted(this.line, this.taken.id, liveness.job.deadMs),
        'counting a job that started',
        log,
      );
      return;
    }
    // The job has ended, is overdue, or was taken by another worker: nothing is settled or reported here.
    const isCancelled = outcome === 'cancelled' || outcome === 'overdue';
    abort(isCancelled ? new JobCancelled({ isOverdue: outcome === 'overdue' }) : new RunReplaced());
    signal.throwIfAborted();
  }

  /** Retries while Redis is unavailable. */
  async #requestStart(): ReturnType<typeof startJob> {
    const { redis, signal, abort } = this.#options;
    try {
      return await retryThroughOutage(async () => {
        signal.throwIfAborted();
        return await startJob(redis, this.taken);
      });
    } catch (error) {
      abort(new RunReplaced());
      throw error;
    }
  }
}

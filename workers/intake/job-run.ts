import type { JobLine } from '../../shared/jobs/job-line.ts';
import type { JobTurns } from '../../shared/jobs/job-turns-store.ts';
import { jobLeaseMs, recordProgress, startJob, type TakenJob } from '../../shared/jobs/run-job-scripts.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { throughOutage } from '../../shared/redis/through-outage.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { JobCancelled, RunReplaced } from '../runs/job-context.ts';

/** Progress within this interval is reported at once. */
const progressIntervalMs = 500;

export interface JobRunOptions {
  readonly redis: RedisClient;
  readonly turns: Pick<JobTurns, 'started' | 'ended'>;
  readonly log: Logger;
  readonly abort: (reason: Error) => void;
  readonly signal: AbortSignal;
  readonly onBegun: () => void;
}

/** One attempt at a durable job since it was taken: whether it has begun, and its progress. */
export class JobRun {
  readonly line: JobLine;
  readonly taken: TakenJob;
  readonly #options: JobRunOptions;
  #beginning: Promise<void> | null = null;
  #begunAtMs: number | null = null;
  #progress = 0;
  #telling: NodeJS.Timeout | null = null;

  constructor(line: JobLine, taken: TakenJob, options: JobRunOptions) {
    this.line = line;
    this.taken = taken;
    this.#options = options;
  }

  get hasBegun(): boolean {
    return this.#begunAtMs !== null;
  }

  /**
   * Marks the job as active, before a vendor is called.
   * @throws the signal's reason if the job must not run
   */
  async begin(): Promise<void> {
    this.#beginning ??= this.#start();
    await this.#beginning;
  }

  /** @param done from 0 to 1 */
  progress(done: number): void {
    this.#progress = Math.floor(Math.min(0.99, done) * 100) / 100;
    this.#telling ??= setTimeout(() => this.#tellProgress(), progressIntervalMs);
  }

  #tellProgress(): void {
    const { redis, log } = this.#options;
    this.#telling = null;
    recordProgress(redis, this.taken, this.#progress).catch((error: unknown) => {
      log.debug({ requestId: this.taken.id, err: error }, 'the progress of a job could not be saved');
    });
  }

  /** Ends the run, however it went. */
  end(): void {
    clearTimeout(this.#telling ?? undefined);
    if (this.#begunAtMs === null) return;
    const { turns, log, signal } = this.#options;
    const serviceMs = signal.aborted ? null : performance.now() - this.#begunAtMs;
    runInBackground(turns.ended(this.line, this.taken.id, serviceMs), 'counting a job that ended', log);
  }

  async #start(): Promise<void> {
    const { turns, log, abort, signal, onBegun } = this.#options;
    const outcome = await this.#askToStart();
    if (outcome === 'ok') {
      this.#begunAtMs = performance.now();
      onBegun();
      runInBackground(turns.started(this.line, this.taken.id, jobLeaseMs), 'counting a job that began', log);
      return;
    }
    // Ended, overdue, or taken by another worker meanwhile: nothing is settled or reported here.
    abort(outcome === 'cancelled' ? new JobCancelled() : new RunReplaced());
    signal.throwIfAborted();
  }

  /** Retries while Redis is unavailable. */
  async #askToStart(): ReturnType<typeof startJob> {
    const { redis, signal, abort } = this.#options;
    try {
      return await throughOutage(async () => {
        signal.throwIfAborted();
        return await startJob(redis, this.taken);
      });
    } catch (error) {
      abort(new RunReplaced());
      throw error;
    }
  }
}

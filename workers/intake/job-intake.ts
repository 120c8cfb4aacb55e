import { setTimeout as delay } from 'node:timers/promises';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import type { JobLine, JobTurn } from '../../shared/work/jobs/job-line.ts';
import type { JobTurns } from '../../shared/work/jobs/job-turns-store.ts';
import { failJob, handBackJob, takeJob, type TakenJob } from '../../shared/work/jobs/run-job-scripts.ts';
import type { ReplyPublisher } from '../replies/reply-publisher.ts';
import { noChannel, queueOfModel, type Job, type QueueName } from '../../shared/work/queue/job-kinds.ts';
import { ReplyWriter } from '../replies/reply-writer.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import {
  describeFailure,
  isReplaced,
  JobCancelled,
  RunReplaced,
  type JobDeps,
  type RequestRun,
} from '../runs/job-context.ts';
import { runChat } from '../runs/run-chat.ts';
import { runEmbedding } from '../runs/run-embedding.ts';
import { RunFacts } from '../runs/run-facts.ts';
import { startRunSpan } from '../runs/run-span.ts';
import { runImage } from '../runs/run-image.ts';
import type { ActiveRuns } from './active-runs.ts';
import { JobRun } from './job-run.ts';
import { readJobBody } from './read-job-body.ts';
import { renewRuns } from './renew-runs.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';

/** Maximum number of durable jobs that a worker runs per queue, in addition to interactive requests. */
const maxRuns: Readonly<Record<QueueName, number>> = { chat: 64, image: 64, embedding: 256 };
/**
 * Maximum number of jobs per model that a worker has taken but not started, because they wait for a vendor's slot. It
 * is low so that a slow model does not block others. For embeddings it is higher because waiting inputs fill calls
 * together. An account gets at most half of it, so that another account's job is taken immediately and waits only for
 * the running job and one more.
 */
const maxNotStarted: Readonly<Record<QueueName, number>> = { chat: 2, image: 2, embedding: 128 };
/** Maximum number of fair-queue turns that are taken at once. */
const maxTurns = 32;
/**
 * How long to wait before checking for jobs again if there is nothing to take, unless a notification arrives first.
 */
const idleMs = 1_000;
/**
 * Pause after fair-queue turns that yielded no job, because the index still included jobs that are gone or because no
 * job may be taken at the moment.
 */
const emptyTurnsMs = 50;
const failurePauseMs = 500;

export interface JobIntakeOptions {
  readonly dependencies: JobDeps;
  readonly turns: JobTurns;
  readonly publisher: ReplyPublisher;
  readonly runs: ActiveRuns;
  readonly queues: readonly QueueName[];
  readonly concurrency: number;
}

/** Takes durable jobs, whose responses are fetched later, and runs them. Accounts take turns. */
export class JobIntake implements Running {
  readonly #options: JobIntakeOptions;
  readonly #active = new Map<string, JobRun>();
  readonly #stopping = new AbortController();
  readonly #loops: Promise<void>[];
  readonly #renewalTimer: NodeJS.Timeout;
  readonly #wakes = new Map<QueueName, () => void>();

  constructor(options: JobIntakeOptions) {
    this.#options = options;
    this.#loops = options.queues.map((queue) => this.#take(queue));
    const { log } = options.dependencies;
    const renewal = { redis: options.dependencies.redis, turns: options.turns, active: this.#active, log };
    const stop = (jobId: string, reason: Error): void => options.runs.fail(jobId, reason);
    this.#renewalTimer = setInterval(() => {
      runInBackground(renewRuns(renewal, stop), 'renewing jobs', log);
    }, liveness.job.reportMs);
  }

  /** Checks for jobs to run. */
  wake(queue: QueueName): void {
    this.#wakes.get(queue)?.();
  }

  /** Cancels the job on behalf of its account. */
  cancel(jobId: string): void {
    if (this.#active.has(jobId)) this.#options.runs.fail(jobId, new JobCancelled());
  }

  /** Cancels the jobs of a queue that wait in this worker for a call slot. @returns how many */
  cancelWaiting(queue: QueueName): number {
    const waiting = [...this.#active.values()].filter(
      ({ line, hasBegun, isAborted }) => line.queue === queue && !hasBegun && !isAborted,
    );
    for (const { taken } of waiting) this.#options.runs.fail(taken.id, new JobCancelled());
    return waiting.length;
  }

  /** Stops taking jobs, hands back those that have not started, and waits for those that have. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const wake of this.#wakes.values()) wake();
    await Promise.all(this.#loops);
    await this.#release([...this.#active.values()].filter(({ hasBegun }) => !hasBegun));
    await this.#options.runs.drained();
    clearInterval(this.#renewalTimer);
  }

  /**
   * Hands back all jobs because the process is exiting; they return to their previous position in the queue.
   * Cancelled jobs are settled with the output so far.
   */
  async handBack(): Promise<void> {
    const { runs } = this.#options;
    clearInterval(this.#renewalTimer);
    await this.#release([...this.#active.values()]);
    runs.endAbandonedStreams();
    await runs.drained();
  }

  async #release(jobs: readonly JobRun[]): Promise<void> {
    const { dependencies, runs, turns } = this.#options;
    await Promise.all(
      jobs.map(async ({ taken, line }) => {
        try {
          const outcome = await handBackJob(dependencies.redis, taken);
          runs.fail(taken.id, outcome === 'cancelled' ? new JobCancelled() : new RunReplaced());
          if (typeof outcome === 'number') await turns.add(line, taken.accountId, outcome);
        } catch (error) {
          // Another worker takes the job when its lease expires.
          runs.fail(taken.id, new RunReplaced());
          dependencies.log.debug({ requestId: taken.id, err: error }, 'handing back a job failed');
        }
      }),
    );
  }

  async #take(queue: QueueName): Promise<void> {
    const { faults } = this.#options.dependencies;
    const part = `taking durable jobs of the queue ${queue}`;
    const { signal } = this.#stopping;
    const maxActive = Math.min(maxRuns[queue], this.#options.concurrency);
    while (!signal.aborted) {
      const wakeUp = new Promise<void>((resolve) => this.#wakes.set(queue, resolve));
      const free = maxActive - this.#countOf(queue);
      let taken: number | null = null;
      try {
        if (free > 0) taken = await this.#takeTurns(queue, Math.min(free, maxTurns));
        faults.clear(part);
      } catch (error) {
        faults.note(part, error);
        await delay(failurePauseMs);
      }
      if ((taken ?? 0) > 0 || signal.aborted) continue;
      const pauseMs = taken === null ? idleMs : emptyTurnsMs;
      const pause = new AbortController();
      // Rejects only when the pause is aborted.
      const timer = delay(pauseMs, undefined, { signal: pause.signal }).catch(() => undefined);
      await Promise.race([wakeUp, timer]);
      pause.abort();
    }
  }

  /** @returns how many jobs were taken; null if no fair-queue turn was available */
  async #takeTurns(queue: QueueName, count: number): Promise<number | null> {
    const { turns, dependencies } = this.#options;
    // Jobs for a model that is not in this worker's catalog wait for a worker that has it.
    const models = dependencies.catalog.current.models.filter(({ type }) => queueOfModel(type) === queue);
    const names = models.flatMap(({ id, aliases }) => [id, ...aliases]);
    const capacity = new Map(names.map((model) => [model, maxNotStarted[queue]]));
    const notStarted = new Map<string, Map<string, number>>();
    for (const { line, taken, hasBegun } of this.#active.values()) {
      const free = capacity.get(line.model);
      if (line.queue !== queue || hasBegun || free === undefined) continue;
      capacity.set(line.model, free - 1);
      const countsByAccount = notStarted.get(line.model) ?? new Map<string, number>();
      notStarted.set(
        line.model,
        countsByAccount.set(taken.accountId, (countsByAccount.get(taken.accountId) ?? 0) + 1),
      );
    }
    const grantedTurns = await turns.take(queue, count, capacity, notStarted);
    if (grantedTurns.length === 0) return null;
    const hadJobs = await Promise.all(
      grantedTurns.map((turn) => this.#useTurn({ queue, model: turn.model }, turn)),
    );
    return hadJobs.filter(Boolean).length;
  }

  /** @returns whether there was a job to take */
  async #useTurn(line: JobLine, turn: JobTurn): Promise<boolean> {
    const { turns, dependencies } = this.#options;
    const { left, job } = await takeJob(dependencies.redis, line, turn.accountId, dependencies.workerId);
    if (job !== null) this.#start(line, job);
    await turns.settle(line.queue, turn, left, job !== null);
    return job !== null;
  }

  #countOf(queue: QueueName): number {
    let count = 0;
    for (const { line } of this.#active.values()) if (line.queue === queue) count += 1;
    return count;
  }

  #start(line: JobLine, taken: TakenJob): void {
    const { log } = this.#options.dependencies;
    const running = this.#run(line, taken).catch((error: unknown) => {
      // The job is taken again when its lease expires.
      log.error({ requestId: taken.id, err: error }, 'running a job failed');
    });
    runInBackground(running, 'running a job', log);
  }

  async #run(line: JobLine, taken: TakenJob): Promise<void> {
    const { dependencies, publisher, runs, turns } = this.#options;
    const { id, accountId, attempt } = taken;
    const { redis } = dependencies;
    const log = dependencies.log.child({ requestId: id });
    const model = dependencies.catalog.find(line.model);
    const names = { requestId: id, accountId, model: model?.id ?? line.model };
    const running = { ...names, claimHash: null, jobAttempt: attempt };
    const started = runs.start(running, noChannel, attempt);
    const run = new JobRun(line, taken, {
      redis,
      turns,
      log,
      signal: started.signal,
      abort: (reason) => runs.fail(id, reason),
      onBegun: () => this.wake(line.queue),
    });
    this.#active.set(id, run);
    try {
      // The catalog may have changed since the fair-queue turn was taken.
      if (model === undefined) await this.#release([run]);
      else if (dependencies.catalog.isDisabled(model)) {
        await failJob(redis, taken, disabledError);
        return;
      }
      started.signal.throwIfAborted();
      const body = await readJobBody(dependencies, taken, started.signal);
      if (body === null) {
        await failJob(redis, taken, bodyLostError);
        return;
      }
      const reply = new ReplyWriter(publisher, noChannel, running, attempt);
      const admitted = requestOf(body.job);
      const span = startRunSpan(dependencies.tracing, line.queue, admitted, attempt);
      const request: RequestRun = {
        ...started,
        reply,
        log,
        facts: new RunFacts(admitted, span),
        begin: () => run.begin(),
        progress: (done) => run.progress(done),
      };
      try {
        await runJob(dependencies, body.job, taken, request);
        await publisher.sent();
      } finally {
        span?.end();
        body.memory?.release();
      }
    } catch (error) {
      if (isReplaced(started)) return;
      if (!(started.signal.reason instanceof JobCancelled)) throw error;
      await failJob(redis, taken, describeFailure(started.signal.reason));
    } finally {
      started.end();
      run.end();
      if (this.#active.get(id) === run) this.#active.delete(id);
      this.wake(line.queue);
    }
  }
}

const requestOf = (job: Job): AdmittedRequest =>
  job.kind === 'embedding' ? job.parts[0]!.request : job.request;

const disabledError = {
  code: 'model_disabled',
  message: 'The model was disabled before the job could start, and nothing was charged.',
} as const;

const bodyLostError = {
  code: 'service_unavailable',
  message: 'The body of the job was lost, and nothing was charged. Send the request again.',
} as const;

async function runJob(
  dependencies: JobDeps,
  job: Job,
  { attempt, free }: TakenJob,
  run: RequestRun,
): Promise<void> {
  // The deadline only limits when a job first starts, and the job's record enforces it.
  const attemptFields = { jobAttempt: attempt, isFree: free, deadlineAtMs: Number.MAX_SAFE_INTEGER };
  switch (job.kind) {
    case 'chat':
      await runChat(dependencies, { ...job, request: { ...job.request, ...attemptFields } }, run);
      break;
    case 'image':
      await runImage(dependencies, { ...job, request: { ...job.request, ...attemptFields } }, run);
      break;
    case 'embedding': {
      const parts = job.parts.map((part) => ({ ...part, request: { ...part.request, ...attemptFields } }));
      await runEmbedding(dependencies, { ...job, parts }, [run]);
      break;
    }
    default:
      job satisfies never;
  }
}

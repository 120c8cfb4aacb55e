import { setTimeout as delay } from 'node:timers/promises';
import { anyModel } from '../../shared/work/batches/batch-constants.ts';
import { batchQueueOf, type JobTurn } from '../../shared/work/jobs/job-line.ts';
import type { JobTurns } from '../../shared/work/jobs/job-turns-store.ts';
import { renewSlices, returnSlice, takeSlice, type TakenSlice } from './slice-scripts.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';
import { shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { retryThroughOutage } from '../../shared/platform/redis/retry-through-outage.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import { queueOfModel, type QueueName } from '../../shared/work/queue/job-kinds.ts';
import { FairBudget } from '../../shared/fairness/fair-budget.ts';
import { BatchPlans } from './batch-plan.ts';
import { SliceRun, type BatchDeps, type SliceDeps } from './slice-run.ts';
import { SliceLost } from './slice-results.ts';

/** Slices that a worker has at a time, per queue. Enough to fill calls while the results of earlier ones are written. */
const maxSlices: Readonly<Record<QueueName, number>> = { chat: 8, image: 8, embedding: 24 };
/** The same per model, so that a slow model does not keep the worker from others. */
const maxSlicesPerModel: Readonly<Record<QueueName, number>> = { chat: 4, image: 4, embedding: 20 };
const maxTurns = 8;
/** How long to wait before checking for batches again if there is nothing to take, unless a notification arrives. */
const idleMs = 1_000;
const emptyTurnsMs = 50;
const failurePauseMs = 500;

export interface BatchIntakeOptions {
  readonly dependencies: BatchDeps;
  readonly turns: JobTurns;
  readonly queues: readonly QueueName[];
}

/** Takes slices of batches and runs them. Accounts take turns. */
export class BatchIntake implements Running {
  readonly #options: BatchIntakeOptions;
  readonly #dependencies: SliceDeps;
  readonly #plans: BatchPlans;
  readonly #active = new Set<ActiveSlice>();
  /** The queues that probably have more slices to take. */
  readonly #unfinished = new Set<QueueName>();
  readonly #stopping = new AbortController();
  readonly #loops: Promise<void>[];
  readonly #renewalTimer: NodeJS.Timeout;
  readonly #wakes = new Map<QueueName, () => void>();

  constructor(options: BatchIntakeOptions) {
    this.#options = options;
    const dependencies = { ...options.dependencies, reading: new FairBudget({ capacity: 1 }) };
    const { redis, log } = dependencies;
    this.#dependencies = dependencies;
    this.#plans = new BatchPlans(redis);
    dependencies.embeddings.setForecast(() => this.#expectsLines('embedding'));
    this.#loops = options.queues.map((queue) => this.#take(queue));
    this.#renewalTimer = setInterval(
      () => runInBackground(this.#renew(), 'renewing slices of batches', log),
      liveness.job.reportMs,
    );
  }

  /** Checks for batches to run. */
  wake(queue: QueueName): void {
    this.#wakes.get(queue)?.();
  }

  /** Looks at once whether lines of this worker must not be run any more. */
  check(): void {
    runInBackground(this.#renew(), 'checking slices of batches', this.#options.dependencies.log);
  }

  /** The accounts of the lines that this worker has, possibly with duplicates. */
  accounts(): string[] {
    return [...this.#active].map(({ slice }) => slice.accountId);
  }

  /** Lines of an account that have not begun fail, because it is banned. Those of other slices fail when they are taken. */
  refuseAccount(accountId: string): void {
    for (const { slice, run } of this.#active)
      if (slice.accountId === accountId) run?.refuse('account_banned');
  }

  /** Stops taking slices, lets running lines end, and hands back the others. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const wake of this.#wakes.values()) wake();
    await Promise.all(this.#loops);
    for (const { run } of this.#active) run?.stop();
    await Promise.all([...this.#active].map(({ ended }) => ended));
    clearInterval(this.#renewalTimer);
  }

  /** Hands back all slices because the process is exiting. Lines that run are run again. */
  async handBack(): Promise<void> {
    clearInterval(this.#renewalTimer);
    await Promise.all(
      [...this.#active].map(async ({ slice, run }) => {
        run?.lose();
        await this.#return(slice, 0);
      }),
    );
  }

  async #take(queue: QueueName): Promise<void> {
    const { faults } = this.#options.dependencies;
    const part = `taking batches of the queue ${queue}`;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const wakeUp = new Promise<void>((resolve) => this.#wakes.set(queue, resolve));
      let taken: number | null = null;
      try {
        const free = maxSlices[queue] - this.#count(queue, null);
        if (free > 0) taken = await this.#takeTurns(queue, Math.min(free, maxTurns));
        faults.clear(part);
      } catch (error) {
        faults.note(part, error);
        await delay(failurePauseMs);
      }
      if ((taken ?? 0) > 0 || signal.aborted) continue;
      const pause = new AbortController();
      // Rejects only when the pause is aborted.
      const timer = delay(taken === null ? idleMs : emptyTurnsMs, undefined, { signal: pause.signal }).catch(
        () => undefined,
      );
      await Promise.race([wakeUp, timer]);
      pause.abort();
    }
  }

  /** @returns how many slices were taken; null if no turn was available */
  async #takeTurns(queue: QueueName, count: number): Promise<number | null> {
    const { turns, dependencies } = this.#options;
    const models = dependencies.catalog.current.models.filter(({ type }) => queueOfModel(type) === queue);
    const capacity = new Map<string, number>();
    for (const { id, aliases } of models)
      for (const name of [id, ...aliases])
        capacity.set(name, maxSlicesPerModel[queue] - this.#count(queue, name));
    capacity.set(anyModel, maxSlices[queue] - this.#count(queue, anyModel));
    const granted = await turns.take(batchQueueOf(queue), count, capacity);
    this.#unfinished.delete(queue);
    if (granted.length === 0) return null;
    const used = await Promise.all(granted.map((turn) => this.#useTurn(queue, turn)));
    if (used.some(({ left }) => left > 0)) this.#unfinished.add(queue);
    return used.filter(({ isTaken }) => isTaken).length;
  }

  async #useTurn(queue: QueueName, turn: JobTurn): Promise<UsedTurn> {
    const { turns, dependencies } = this.#options;
    const line = { queue: batchQueueOf(queue), model: turn.model };
    const { left, slice } = await takeSlice(dependencies.redis, line, turn.accountId, dependencies.workerId);
    if (slice !== null) this.#start(queue, turn.model, slice);
    await turns.settle(line.queue, turn, left, slice !== null);
    return { left, isTaken: slice !== null };
  }

  /** Whether lines of a queue are being read, or are about to be. */
  #expectsLines(queue: QueueName): boolean {
    if (this.#unfinished.has(queue)) return true;
    for (const one of this.#active)
      if (one.queue === queue && (one.run === null || one.run.isReading)) return true;
    return false;
  }

  #count(queue: QueueName, model: string | null): number {
    let count = 0;
    for (const one of this.#active)
      if (one.queue === queue && (model === null || one.model === model)) count += 1;
    return count;
  }

  #start(queue: QueueName, model: string, slice: TakenSlice): void {
    const active: ActiveSlice = { queue, model, slice, run: null, ended: Promise.resolve() };
    this.#active.add(active);
    active.ended = this.#run(active).finally(() => {
      this.#active.delete(active);
      this.wake(queue);
    });
  }

  async #run(active: ActiveSlice): Promise<void> {
    const { dependencies } = this.#options;
    const { slice } = active;
    try {
      const { accountId, batchId } = slice;
      const plan = await retryThroughOutage(() => this.#plans.find(accountId, batchId));
      if (plan === null) return;
      active.run = new SliceRun(this.#dependencies, slice, plan, active.model);
      if (this.#stopping.signal.aborted) active.run.stop();
      const end = await active.run.run();
      if (!end.isDone) await this.#return(slice, end.pauseMs);
    } catch (error) {
      if (error instanceof SliceLost) return;
      // Another worker takes the slice when its lease expires.
      dependencies.log.error({ batchId: slice.batchId, err: error }, 'running lines of a batch failed');
    }
  }

  async #return(slice: TakenSlice, pauseMs: number): Promise<void> {
    const { dependencies, turns } = this.#options;
    try {
      const line = await returnSlice(dependencies.redis, slice, pauseMs);
      if (line !== null) await turns.add(line, slice.accountId, line.weight);
    } catch (error) {
      // Another worker takes it when its lease expires.
      dependencies.log.debug({ batchId: slice.batchId, err: error }, 'handing back lines of a batch failed');
    }
  }

  async #renew(): Promise<void> {
    const { redis, log } = this.#options.dependencies;
    const byShard = new Map<number, ActiveSlice[]>();
    for (const active of this.#active) {
      const shard = shardOf(active.slice.accountId);
      const ofShard = byShard.get(shard);
      if (ofShard === undefined) byShard.set(shard, [active]);
      else ofShard.push(active);
    }
    await Promise.all(
      [...byShard].map(async ([shard, ofShard]) => {
        try {
          const reasons = await renewSlices(
            redis,
            shard,
            ofShard.map(({ slice }) => slice),
          );
          for (const [i, { run }] of ofShard.entries()) {
            const reason = reasons[i]!;
            if (reason === 'gone') run?.lose();
            else if (reason !== null) run?.refuse(reason);
          }
        } catch (error) {
          log.debug({ err: error }, 'renewing the leases of slices failed');
        }
      }),
    );
  }
}

interface UsedTurn {
  /** Batches that still have lines to take. */
  readonly left: number;
  /** Whether there was a slice to take. */
  readonly isTaken: boolean;
}

/** A slice that this worker has. */
interface ActiveSlice {
  readonly queue: QueueName;
  /** Whose turn it took. */
  readonly model: string;
  readonly slice: TakenSlice;
  run: SliceRun | null;
  ended: Promise<void>;
}

import type { AppError } from '../../contract/errors.ts';
import { type BudgetShare, FairBudget } from '../../fairness/fair-budget.ts';
import { RecentUse } from '../../fairness/recent-use.ts';
import { within } from '../runtime/within.ts';
import type { RunEnd } from './child-request.ts';
import { ProcessPool, type ProcessPoolOptions, type ProcessRun } from './process-pool.ts';

/**
 * A level of processes. An account's requests start at the first level whose `maxUsedMs` exceeds the account's recent
 * use. A request that exceeds the time limit of its level continues at the next level. So requests that are crafted to
 * take long delay only other slow requests.
 */
export interface LevelBounds {
  readonly processes: number;
  /** Time limit per request, once its process has started. Infinity in the last level, where only that of the pool applies. */
  readonly maxRunMs: number;
  /** Recent use below which an account may use this level. Infinity in the last level. */
  readonly maxUsedMs: number;
}

export interface LevelOptions {
  readonly signal: AbortSignal;
  /** How long to wait for a process of a level. */
  readonly waitMs: number;
  /** Creates the error for a request that gets no process in time. */
  readonly createError: () => AppError;
  /** How many requests of the account may wait at the same time; that of FairBudget by default. */
  readonly maxWaiting?: number;
  /** The first level that the request may use; 0 by default. For requests that are known to take long. */
  readonly from?: number;
}

interface Level extends LevelBounds {
  readonly slots: FairBudget;
}

/** A slot of a level in which a request is being worked on. */
interface LevelSlot {
  readonly level: number;
  readonly slot: BudgetShare;
}

/** An account that uses 5 s per minute accumulates no use, and a use always decays within 12 minutes. */
const useDecay = { decayRate: 1 / 12, maxUseMs: 60_000 };

/** Killing a process and starting its successor takes this much CPU time, which counts as use of the account. */
const replacementMs = 200;

/** Processes in which accounts take turns, so that nobody waits for the slow requests of other accounts. */
export class LeveledProcesses<Request extends object, Reply> {
  readonly #levels: readonly Level[];
  readonly #used = new RecentUse(useDecay);
  readonly #pool: ProcessPool<Request, Reply>;

  constructor(levels: readonly LevelBounds[], pool: ProcessPoolOptions<Reply>) {
    this.#levels = levels.map((bounds) => ({
      ...bounds,
      slots: new FairBudget({ capacity: bounds.processes }),
    }));
    this.#pool = new ProcessPool(pool);
  }

  /**
   * @throws the error from `createError`; AppError `service_unavailable` if no process could be started; the signal's
   * reason
   */
  async run(
    accountId: string,
    request: Request,
    options: LevelOptions,
  ): Promise<Exclude<RunEnd<Reply>, { kind: 'stopped' }>> {
    const { signal } = options;
    let current = await this.#acquire(accountId, options.from ?? 0, options);
    let run = this.#pool.start(request, signal);
    try {
      for (;;) {
        const end = await this.#runAt(current.level, accountId, run);
        if (end?.kind === 'stopped') throw signal.reason;
        if (end !== undefined) return end;
        const level = current.level + 1;
        const slot = this.#levels[level]!.slots.tryAcquire(accountId, 1);
        // If the next level has no free slot, discard the process with its memory, and start again once a slot is free.
        if (slot === null) await run.stop();
        current.slot.release();
        current = slot === null ? await this.#acquire(accountId, level, options) : { level, slot };
        if (slot === null) run = this.#pool.start(request, signal);
      }
    } finally {
      // Release the slot only after the process has become idle, or has been killed and its memory released.
      await run.stop();
      current.slot.release();
    }
  }

  get pids(): number[] {
    return this.#pool.pids;
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  /**
   * Acquires a slot of the account's level, or of `from` if that is higher. Checks the level again after the wait,
   * because other requests of the account may have raised it.
   */
  async #acquire(accountId: string, from: number, options: LevelOptions): Promise<LevelSlot> {
    for (;;) {
      const level = Math.max(from, this.#findLevel(accountId));
      const slot = await this.#levels[level]!.slots.acquire(accountId, 1, options);
      if (this.#findLevel(accountId) <= level) return { level, slot };
      slot.release();
    }
  }

  #findLevel(accountId: string): number {
    const usedMs = this.#used.of(accountId);
    return this.#levels.findIndex(({ maxUsedMs }) => usedMs < maxUsedMs);
  }

  /** Returns undefined if the request has exceeded the time limit of the level. */
  async #runAt(
    level: number,
    accountId: string,
    { begin, end }: ProcessRun<Reply>,
  ): Promise<RunEnd<Reply> | undefined> {
    await begin;
    const startedMs = performance.now();
    const { maxRunMs } = this.#levels[level]!;
    let result: RunEnd<Reply> | undefined;
    try {
      result = await (maxRunMs === Infinity ? end : within(maxRunMs, end, () => undefined));
      return result;
    } finally {
      const isReplaced = result !== undefined && result.kind !== 'reply';
      this.#used.add(accountId, performance.now() - startedMs + (isReplaced ? replacementMs : 0));
    }
  }
}

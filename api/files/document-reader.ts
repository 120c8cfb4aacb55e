import { AppError } from '../../shared/contract/errors.ts';
import { type BudgetShare, FairBudget } from '../../shared/fairness/fair-budget.ts';
import { RecentUse } from '../../shared/fairness/recent-use.ts';
import { within } from '../../shared/runtime/within.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { FileResult, FileReply, FileRequest } from './file-content.ts';
import { FileProcesses, type FileRun } from './file-processes.ts';

/**
 * Levels of file processes. An account's files start at the first level whose `maxUsedMs` exceeds the account's recent
 * reading time. A file that exceeds the time limit of its level continues at the next level. So files that are crafted
 * to take long delay only other slow files. A thousand pages of plain text take a second or two, and more on a busy
 * machine.
 */
const levels: readonly LevelBounds[] = [
  { processes: 2, maxRunMs: 2_000, maxUsedMs: 5_000 },
  { processes: 1, maxRunMs: 6_000, maxUsedMs: 20_000 },
  { processes: 1, maxRunMs: Infinity, maxUsedMs: Infinity },
];
/** Time limit for one file, in its last attempt. */
const defaultTimeoutMs = 30_000;
/** A caller that waits longer for a slot of a level gets an error and may retry. */
const waitMs = 60_000;
/** An account that reads for 5 s per minute accumulates no use, and a use always decays within 12 minutes. */
const useDecay = { decayRate: 1 / 12, maxUseMs: 60_000 };

interface LevelBounds {
  readonly processes: number;
  /** Time limit per file. */
  readonly maxRunMs: number;
  /** Recent reading time below which an account may use this level. */
  readonly maxUsedMs: number;
}

interface Level extends LevelBounds {
  readonly slots: FairBudget;
}

/** A slot of a level in which a file is being read. */
interface LevelSlot {
  readonly level: number;
  readonly slot: BudgetShare;
}

/** Reads and tokenizes callers' files in separate processes, with limits on time and memory. Accounts take turns. */
export class DocumentReader {
  readonly #levels: readonly Level[] = levels.map((bounds) => ({
    ...bounds,
    slots: new FairBudget({ capacity: bounds.processes }),
  }));
  readonly #used = new RecentUse(useDecay);
  readonly #processes: FileProcesses;

  constructor(log: Pick<Logger, 'error'>, timeoutMs = defaultTimeoutMs) {
    this.#processes = new FileProcesses(timeoutMs, log);
  }

  /** @throws AppError `queue_full` if no process becomes free in time; the signal's reason */
  async read(accountId: string, request: FileRequest, signal: AbortSignal): Promise<FileResult> {
    let current = await this.#acquire(accountId, 0, signal);
    let run = this.#processes.start(request, signal);
    try {
      for (;;) {
        const reply = await this.#runAt(current.level, accountId, run);
        if (reply !== undefined) {
          if (reply === null) signal.throwIfAborted();
          return reply?.answer ?? { fault: 'too_large' };
        }
        const level = current.level + 1;
        const slot = this.#levels[level]!.slots.tryAcquire(accountId, 1);
        // If the next level has no free slot, discard the process with its memory, and read the file again once a slot
        // is free.
        if (slot === null) await run.stop();
        current.slot.release();
        current = slot === null ? await this.#acquire(accountId, level, signal) : { level, slot };
        if (slot === null) run = this.#processes.start(request, signal);
      }
    } finally {
      // Release the slot only after the process has become idle, or has been killed and its memory released.
      await run.stop();
      current.slot.release();
    }
  }

  async close(): Promise<void> {
    await this.#processes.close();
  }

  /**
   * Acquires a slot of the account's level, or of `from` if that is higher. Checks the level again after the wait,
   * because other files of the account may have raised it.
   */
  async #acquire(accountId: string, from: number, signal: AbortSignal): Promise<LevelSlot> {
    for (;;) {
      const level = Math.max(from, this.#findLevel(accountId));
      const options = { signal, waitMs, refuse: tooManyFiles };
      const slot = await this.#levels[level]!.slots.acquire(accountId, 1, options);
      if (this.#findLevel(accountId) <= level) return { level, slot };
      slot.release();
    }
  }

  #findLevel(accountId: string): number {
    const usedMs = this.#used.of(accountId);
    return this.#levels.findIndex(({ maxUsedMs }) => usedMs < maxUsedMs);
  }

  /** Returns undefined if the file has exceeded the time limit of the level. */
  async #runAt(level: number, accountId: string, run: FileRun): Promise<FileReply | null | undefined> {
    const startedMs = performance.now();
    const { maxRunMs } = this.#levels[level]!;
    try {
      return await (maxRunMs === Infinity ? run.reply : within(maxRunMs, run.reply, () => undefined));
    } finally {
      this.#used.add(accountId, performance.now() - startedMs);
    }
  }
}

const tooManyFiles = (): AppError =>
  new AppError('queue_full', {
    message: 'Too many of your files are being read. Wait for the answers under way, and try again shortly.',
  });

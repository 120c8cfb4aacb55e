import { AppError } from '../../shared/contract/errors.ts';
import { FairBudget } from '../../shared/fairness/fair-budget.ts';
import type { FileAnswer, FileRequest } from './file-content.ts';
import { FileThreads } from './file-threads.ts';

/** Files that are read at once, each of another account. */
const maxThreads = 2;
/** A thousand pages of plain text take a second or two, and more on a busy machine. */
const defaultTimeoutMs = 30_000;
/** A caller that waits longer is told to come back. */
const waitMs = 60_000;

/**
 * Reads and counts files of callers on threads, within bounds of time and memory, accounts taking turns: a file that is
 * made to cost delays nobody but its own account.
 */
export class DocumentReader {
  readonly #slots = new FairBudget({ capacity: maxThreads });
  readonly #threads: FileThreads;

  constructor(timeoutMs = defaultTimeoutMs) {
    this.#threads = new FileThreads(timeoutMs);
  }

  /** @throws AppError `queue_full` where there is no thread in time; the signal's reason */
  async read(accountId: string, request: FileRequest, signal: AbortSignal): Promise<FileAnswer> {
    const slot = await this.#slots.acquire(accountId, 1, { signal, waitMs, refuse: refuseFile });
    const run = this.#threads.start(request, signal);
    try {
      const reply = await run.reply;
      if (reply === null) signal.throwIfAborted();
      return reply?.answer ?? { fault: 'too_large' };
    } finally {
      // The slot is free only once the thread is, and the memory of one that was ended is back.
      await run.stop();
      slot.release();
    }
  }

  async close(): Promise<void> {
    await this.#threads.close();
  }
}

const refuseFile = (): AppError =>
  new AppError('queue_full', {
    message: 'Too many of your files are being read. Wait for the answers under way, and try again shortly.',
  });

import type { JobState, QueueJob, QueueJobJson } from '@bull-board/api/dist/types.js';
import type { Job } from 'bullmq';
import { errorKinds } from '../../shared/contract/error-kinds.ts';
import { describeItem, type BoardItem } from './describe-item.ts';

/** BullMQ's own reasons, and our error codes. Other reasons may quote a prompt, an address or a vendor. */
const shownReasons: ReadonlySet<string> = new Set([
  ...Object.keys(errorKinds),
  'job stalled more than allowable limit',
]);
const hiddenReason = 'Not shown here, because it may quote a caller. The log of the worker has it.';

/** An item as the board shows it: without what callers wrote, results, reasons that may quote either, and stack traces. */
export class BoardJob implements QueueJob {
  readonly #job: Job<BoardItem>;

  constructor(job: Job<BoardItem>) {
    this.#job = job;
  }

  /** The board reads the options of an item from here, too. */
  get opts(): { readonly delay: number } {
    return { delay: this.#job.delay };
  }

  get id(): string | undefined {
    return this.#job.id;
  }

  /** Everything that leaves the process. A field that BullMQ adds is not shown until it is added here. */
  toJSON(): QueueJobJson {
    const { id, name, data, attemptsMade, attemptsStarted, stalledCounter, delay, priority, opts } =
      this.#job;
    const { timestamp, processedOn, finishedOn, failedReason } = this.#job;
    return {
      id,
      name,
      timestamp,
      attemptsMade,
      attemptsStarted,
      stalledCounter,
      delay,
      priority,
      processedOn: processedOn ?? null,
      finishedOn: finishedOn ?? null,
      failedReason: describeReason(failedReason),
      data: describeItem(data),
      opts: { attempts: opts.attempts, priority: opts.priority, delay: opts.delay },
      progress: 0,
      stacktrace: [],
      returnvalue: null,
    };
  }

  async getState(): Promise<JobState> {
    return await this.#job.getState();
  }

  promote = refuse;
  remove = refuse;
  retry = refuse;
}

function describeReason(reason: string | undefined): string {
  if (reason === undefined || reason === '') return '';
  return shownReasons.has(reason) ? reason : hiddenReason;
}

async function refuse(): Promise<never> {
  return await Promise.reject(new Error('The queue board is read-only.'));
}

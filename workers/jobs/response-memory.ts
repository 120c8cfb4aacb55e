import { AppError } from '../../shared/contract/errors.ts';
import { FairBudget, type BudgetShare } from '../../shared/fairness/fair-budget.ts';
import type { AdmittedRequest } from '../../shared/queue/job-kinds.ts';

/** Of all whole answers that are made, or wait to be sent. */
const defaultResponseMemoryBytes = 512_000_000;

/** What whole answers hold of a process. Nobody knows how much that will be before a vendor has made them. */
export function createResponseBudget(capacity = defaultResponseMemoryBytes): FairBudget {
  return new FairBudget({ capacity, mayOverrun: true, maxWaitingPerHolder: Infinity });
}

/**
 * What one whole answer holds of the process until it has been sent. An account whose answers hold its share waits before
 * it has more of them made; what a vendor has made is held, however much it is, for it is paid for.
 */
export class ResponseMemory {
  readonly #budget: FairBudget;
  readonly #request: Pick<AdmittedRequest, 'accountId' | 'deadlineAtMs'>;
  #share: BudgetShare | null = null;

  constructor(budget: FairBudget, request: Pick<AdmittedRequest, 'accountId' | 'deadlineAtMs'>) {
    this.#budget = budget;
    this.#request = request;
  }

  /**
   * Waits until the account may have another answer made.
   * @param expectedBytes what answers like it mostly are
   * @throws AppError `deadline_exceeded`; the signal's reason
   */
  async acquire(expectedBytes: number, signal: AbortSignal): Promise<void> {
    const { accountId, deadlineAtMs } = this.#request;
    this.#share = await this.#budget.acquire(accountId, expectedBytes, {
      signal,
      waitMs: Math.max(0, deadlineAtMs - Date.now()),
      refuse: () => new AppError('deadline_exceeded'),
    });
  }

  /** The answer is there. */
  hold(bytes: number): void {
    this.#share?.changeTo(bytes);
  }

  release(): void {
    this.#share?.release();
  }
}

/** Makes and sends one whole answer. What that holds is given back at its end, however it ends. */
export async function withResponseMemory(
  budget: FairBudget,
  request: Pick<AdmittedRequest, 'accountId' | 'deadlineAtMs'>,
  answer: (memory: ResponseMemory) => Promise<void>,
): Promise<void> {
  const memory = new ResponseMemory(budget, request);
  try {
    await answer(memory);
  } finally {
    memory.release();
  }
}

const defaultPixels = 1024 * 1024;
const mostPixels = 4096 * 4096;
/** Of a PNG of a photograph or a painting; plain pictures have less, and noise has twice as much. */
const bytesPerPixel = 2;

/** What so many images of a size (`1024x1536`) mostly are. */
export function expectImageBytes(count: number, size: string | null): number {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(size ?? '') ?? [];
  const pixels = width === undefined ? defaultPixels : Number(width) * Number(height);
  return count * Math.min(pixels, mostPixels) * bytesPerPixel;
}

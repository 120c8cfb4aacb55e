import { AppError } from '../../shared/contract/errors.ts';
import { FairBudget, type BudgetShare } from '../../shared/fairness/fair-budget.ts';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';

/** Total for all complete responses that are being generated or waiting to be sent. */
const defaultResponseMemoryBytes = 512_000_000;

/** Creates the memory budget for complete responses. Their size is unknown until a vendor has generated them. */
export function createResponseBudget(capacity = defaultResponseMemoryBytes): FairBudget {
  return new FairBudget({ capacity, mayExceedCapacity: true, maxWaitingPerHolder: Infinity });
}

/**
 * The memory of one complete response until it has been sent. If an account's responses use up its share of the budget,
 * its next requests wait before a vendor is called. Once a vendor has generated a response, it is accepted even if it
 * is larger than expected, because the vendor bills it.
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
   * Waits until the account has memory for another response.
   * @param expectedBytes the typical size of such a response
   * @throws AppError `deadline_exceeded` if it has none in time; the signal's reason when it is aborted
   */
  async acquire(expectedBytes: number, signal: AbortSignal): Promise<void> {
    const { accountId, deadlineAtMs } = this.#request;
    this.#share = await this.#budget.acquire(accountId, expectedBytes, {
      signal,
      waitMs: Math.max(0, deadlineAtMs - Date.now()),
      createError: () => new AppError('deadline_exceeded'),
    });
  }

  /** Adjusts the reserved memory to the actual size of the response. */
  resize(bytes: number): void {
    this.#share?.changeTo(bytes);
  }

  release(): void {
    this.#share?.release();
  }
}

/** Runs the function that generates and sends one complete response, and then releases the response's memory. */
export async function withResponseMemory(
  budget: FairBudget,
  request: Pick<AdmittedRequest, 'accountId' | 'deadlineAtMs'>,
  run: (memory: ResponseMemory) => Promise<void>,
): Promise<void> {
  const memory = new ResponseMemory(budget, request);
  try {
    await run(memory);
  } finally {
    memory.release();
  }
}

const defaultPixels = 1024 * 1024;
const maxPixels = 4096 * 4096;
/** For a PNG of a photograph or a painting. Flat images take less, and noise takes twice as much. */
const bytesPerPixel = 2;

/** Returns the typical size of this many images of a size (`1024x1536`), in bytes. */
export function estimateImageBytes(count: number, size: string | null): number {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(size ?? '') ?? [];
  const pixels = width === undefined ? defaultPixels : Number(width) * Number(height);
  return count * Math.min(pixels, maxPixels) * bytesPerPixel;
}

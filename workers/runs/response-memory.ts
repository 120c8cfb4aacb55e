import { AppError } from '../../shared/contract/errors.ts';
import { FairBudget, type BudgetShare } from '../../shared/fairness/fair-budget.ts';
import type { AdmittedRequest } from '../../shared/billing/admitted-request.ts';

/** Total for all whole responses that are being made or wait to be sent. */
const defaultResponseMemoryBytes = 512_000_000;

/** Creates the memory budget for whole responses. Their size is unknown until a vendor has made them. */
export function createResponseBudget(capacity = defaultResponseMemoryBytes): FairBudget {
  return new FairBudget({ capacity, mayOverrun: true, maxWaitingPerHolder: Infinity });
}

/**
 * The memory that one whole response holds until it has been sent. An account whose responses use up its share
 * waits before it gets more of them made. A response that a vendor has made is held whatever its size, because
 * it is paid for.
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
   * Waits until the account may have another response made.
   * @param expectedBytes the typical size of such responses
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

  /** Adjusts the share to the actual size of the response. */
  hold(bytes: number): void {
    this.#share?.changeTo(bytes);
  }

  release(): void {
    this.#share?.release();
  }
}

/** Makes and sends one whole response, and releases its memory at the end, however it ends. */
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
/** For a PNG of a photograph or a painting. Flat images have less, and noise has twice as much. */
const bytesPerPixel = 2;

/** Returns the typical size of this many images of a size (`1024x1536`), in bytes. */
export function expectImageBytes(count: number, size: string | null): number {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(size ?? '') ?? [];
  const pixels = width === undefined ? defaultPixels : Number(width) * Number(height);
  return count * Math.min(pixels, mostPixels) * bytesPerPixel;
}

import { AppError } from '../../shared/contract/errors.ts';
import type { BudgetShare, FairBudget } from '../../shared/fairness/fair-budget.ts';
import type { AdmittedRequest } from '../../shared/queue/job-kinds.ts';

/** Of one image; the contract bounds data URIs by the same. */
export const maxImageBytes = 20_000_000;
/** Of one request's images together: more than any vendor takes in one call, and what it may make a worker do. */
export const maxRequestBytes = 60_000_000;

/** Whose turn it is where requests wait for each other, and until when one waits. */
export type MediaHolder = Pick<AdmittedRequest, 'accountId' | 'deadlineAtMs'>;

export const countMsUntilDeadline = ({ deadlineAtMs }: MediaHolder): number =>
  Math.max(0, deadlineAtMs - Date.now());

/**
 * Takes memory for all images of a request at once: requests that each held a part of what they need would wait for each
 * other.
 * @throws AppError `deadline_exceeded` where there is none by the request's deadline; the signal's reason
 */
export async function acquireMediaMemory(
  memory: FairBudget,
  request: MediaHolder,
  bytes: number,
  signal: AbortSignal,
): Promise<BudgetShare> {
  return await memory.acquire(request.accountId, bytes, {
    signal,
    waitMs: countMsUntilDeadline(request),
    refuse: () => new AppError('deadline_exceeded'),
  });
}

import { AppError } from '../../shared/contract/errors.ts';
import type { BudgetShare, FairBudget } from '../../shared/fairness/fair-budget.ts';
import type { AdmittedRequest } from '../../shared/billing/admitted-request.ts';

/** Per image. The contract limits data URIs to the same. */
export const maxImageBytes = 20_000_000;
/** For all images of one request: more than any vendor accepts in one call, and a limit on the work of a worker. */
export const maxRequestBytes = 60_000_000;

/** The account whose turn it is when requests wait for memory, and how long they wait. */
export type MediaHolder = Pick<AdmittedRequest, 'accountId' | 'deadlineAtMs'>;

export const countMsUntilDeadline = ({ deadlineAtMs }: MediaHolder): number =>
  Math.max(0, deadlineAtMs - Date.now());

/**
 * Takes memory for all images of a request at once. Requests that each held a part of what they need would
 * deadlock.
 * @throws AppError `deadline_exceeded` if none is free by the request's deadline; the signal's reason
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

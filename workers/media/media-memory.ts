import { AppError } from '../../shared/contract/errors.ts';
import type { BudgetShare, FairBudget } from '../../shared/fairness/fair-budget.ts';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';

/** Per image. The contract sets the same limit for data URIs. */
export const maxImageBytes = 20_000_000;
/** For all images of one request. More than any vendor accepts in one call; limits the work of a worker. */
export const maxRequestBytes = 60_000_000;

/** The account and deadline of a request that waits for memory; accounts take turns. */
export type MediaRequest = Pick<AdmittedRequest, 'accountId' | 'deadlineAtMs'>;

export const msUntilDeadline = ({ deadlineAtMs }: MediaRequest): number =>
  Math.max(0, deadlineAtMs - Date.now());

/**
 * Reserves memory for all images of a request in one step. Requests that each held only part of their memory could
 * deadlock.
 * @throws AppError `deadline_exceeded` if not enough is free by the request's deadline; the signal's reason when it is
 * aborted
 */
export async function acquireMediaMemory(
  memory: FairBudget,
  request: MediaRequest,
  bytes: number,
  signal: AbortSignal,
): Promise<BudgetShare> {
  return await memory.acquire(request.accountId, bytes, {
    signal,
    waitMs: msUntilDeadline(request),
    createError: () => new AppError('deadline_exceeded'),
  });
}

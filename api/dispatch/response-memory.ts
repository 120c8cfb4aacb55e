import { AppError } from '../../shared/contract/errors.ts';
import type { BudgetShare, FairBudget } from '../../shared/fairness/fair-budget.ts';

/** Smaller responses are not worth counting. */
const countedFromBytes = 256 * 1024;
/** A caller that waits longer is told to come back. */
const waitMs = 60_000;

/**
 * Waits until the process has memory for a response of this size, from before it is asked for until its caller has read
 * it: callers who read slowly would otherwise hold any amount. Null where it is too small to count.
 * @throws AppError `queue_full` after a minute; the signal's reason
 */
export async function acquireResponseMemory(
  budget: FairBudget,
  accountId: string,
  bytes: number,
  signal: AbortSignal,
): Promise<BudgetShare | null> {
  if (bytes < countedFromBytes) return null;
  return await budget.acquire(accountId, bytes, { signal, waitMs, refuse: refuseResponse });
}

const refuseResponse = (): AppError =>
  new AppError('queue_full', {
    message: 'Too many large answers are under way. Read those that are, and try again shortly.',
  });

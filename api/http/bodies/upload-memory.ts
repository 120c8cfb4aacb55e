import type { BudgetShare } from '../../../shared/fairness/fair-budget.ts';
import type { Services } from '../../services.ts';
import type { ApiContext } from '../request/context.ts';
import { holderOf } from '../request/holder.ts';
import { noMemory } from './body-errors.ts';

/** What writing a file takes: two parts of its object, the line that is checked, and what is on its way. */
const uploadMemoryBytes = 12_000_000;
/** How long a request waits for it. */
const memoryWaitMs = 30_000;

/** Waits for the memory to write a file. @throws AppError `queue_full`; the reason of the request's signal */
export async function acquireUploadMemory(
  { uploadMemory }: Pick<Services, 'uploadMemory'>,
  context: ApiContext,
): Promise<BudgetShare> {
  return await uploadMemory.acquire(holderOf(context).accountId, uploadMemoryBytes, {
    signal: context.state.signal,
    waitMs: memoryWaitMs,
    createError: noMemory,
  });
}

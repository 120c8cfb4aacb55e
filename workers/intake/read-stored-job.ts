import { releaseReservation } from '../../shared/billing/settle-script.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { BudgetShare } from '../../shared/fairness/fair-budget.ts';
import type { Job, StoredJob } from '../../shared/queue/job-kinds.ts';
import { readJson } from '../../shared/runtime/read-json.ts';
import { describeFailure, isReplaced, type JobDependencies, type RequestRun } from '../jobs/job-context.ts';

/** Of a byte of JSON: letters beyond Latin take two in memory. */
export const memoryPerByte = 2;

/** A large job that was read, and its share of the memory for such. */
export interface ReadJob<T extends Job> {
  readonly job: T;
  readonly memory: BudgetShare;
}

/**
 * Reads a large job, once there is memory for it, in turns of its account: whatever else this worker has on hand goes on
 * meanwhile. Null where nobody waits for it any more, as it is not read then, and where its body is lost: its requests have
 * been ended.
 * @param runs of its requests, in their order
 */
export async function readStoredJob<T extends Job>(
  dependencies: JobDependencies,
  item: StoredJob,
  runs: readonly RequestRun[],
): Promise<ReadJob<T> | null> {
  let memory: BudgetShare | null = null;
  try {
    memory = await acquireMemory(dependencies, item, runs);
    const [{ accountId }] = item.requests;
    const read = await readJson(dependencies.payloads.read(item.stored), accountId);
    if (read !== null) return { job: read.value as T, memory };
    dependencies.log.warn({ stored: item.stored }, 'the body of a job is gone');
    throw new AppError('service_unavailable', { message: 'The body of the request was lost.' });
  } catch (error) {
    memory?.release();
    await endUnread(dependencies, item, runs, error);
    return null;
  }
}

async function acquireMemory(
  { jobMemory }: JobDependencies,
  { bytes, requests }: StoredJob,
  runs: readonly RequestRun[],
): Promise<BudgetShare> {
  const [{ accountId, deadlineAtMs }] = requests;
  const [{ signal }] = runs as [RequestRun];
  if (runs.every((run) => run.signal.aborted)) throw signal.reason;
  return await jobMemory.acquire(accountId, bytes * memoryPerByte, {
    // Of several one may leave, and the others wait on.
    ...(runs.length === 1 && { signal }),
    waitMs: Math.max(0, deadlineAtMs - Date.now()),
    refuse: () => new AppError('deadline_exceeded'),
  });
}

/** No model was asked: nobody pays, and whoever waits is told. */
async function endUnread(
  { redis }: JobDependencies,
  { requests }: StoredJob,
  runs: readonly RequestRun[],
  error: unknown,
): Promise<void> {
  for (const [i, run] of runs.entries()) {
    if (isReplaced(run)) continue;
    await releaseReservation(redis, requests[i]!);
    run.reply.error(describeFailure(run.signal.aborted ? run.signal.reason : error));
  }
}

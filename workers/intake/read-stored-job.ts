import { releaseReservation } from '../../shared/work/settlement/settle-script.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { BudgetShare } from '../../shared/fairness/fair-budget.ts';
import type { Job, StoredJob } from '../../shared/work/queue/job-kinds.ts';
import { readJson } from '../upstreams/read-json.ts';
import { describeFailure, isReplaced, type JobDeps, type RequestRun } from '../runs/job-context.ts';

/** Memory per byte of JSON: characters beyond Latin-1 take two bytes. */
export const memoryPerByte = 2;

/** A large job, and the memory reserved for it. */
export interface ReadJob<T extends Job> {
  readonly job: T;
  readonly memory: BudgetShare;
}

/**
 * Reads a large job once there is memory for it; accounts take turns for memory. The worker's other work continues
 * during the wait. Returns null if the body is lost, or if nobody waits for the job any more, in which case it is
 * not read. In both cases its requests have been ended.
 * @param runs the runs of its requests, in the same order
 */
export async function readStoredJob<T extends Job>(
  dependencies: JobDeps,
  item: StoredJob,
  runs: readonly RequestRun[],
): Promise<ReadJob<T> | null> {
  let memory: BudgetShare | null = null;
  try {
    memory = await acquireMemory(dependencies, item, runs);
    const [{ accountId }] = item.requests;
    const parsed = await readJson(dependencies.payloads.read(item.stored), accountId);
    if (parsed !== null) return { job: parsed.value as T, memory };
    dependencies.log.warn({ stored: item.stored }, 'job body not found');
    throw new AppError('service_unavailable', { message: 'The body of the request was lost.' });
  } catch (error) {
    memory?.release();
    await failUnreadRequests(dependencies, item, runs, error);
    return null;
  }
}

async function acquireMemory(
  { jobMemory }: JobDeps,
  { bytes, requests }: StoredJob,
  runs: readonly RequestRun[],
): Promise<BudgetShare> {
  const [{ accountId, deadlineAtMs }] = requests;
  const [{ signal }] = runs as [RequestRun];
  if (runs.every((run) => run.signal.aborted)) throw signal.reason;
  return await jobMemory.acquire(accountId, bytes * memoryPerByte, {
    // If one of several callers disconnects, the others keep waiting.
    ...(runs.length === 1 && { signal }),
    waitMs: Math.max(0, deadlineAtMs - Date.now()),
    createError: () => new AppError('deadline_exceeded'),
  });
}

/** Fails the requests of a job that was not read. No model was called, so the callers are not charged. */
async function failUnreadRequests(
  { redis }: JobDeps,
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

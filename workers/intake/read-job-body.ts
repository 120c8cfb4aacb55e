import { AppError } from '../../shared/contract/errors.ts';
import type { BudgetShare } from '../../shared/fairness/fair-budget.ts';
import type { TakenJob } from '../../shared/work/jobs/run-job-scripts.ts';
import type { Job } from '../../shared/work/queue/job-kinds.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { readJson } from '../upstreams/read-json.ts';
import type { JobDeps } from '../runs/job-context.ts';
import { memoryPerByte } from './read-stored-job.ts';

/** The format of a stored job body. */
export interface JobBody {
  readonly v: 1;
  readonly job: Job;
}

/** A durable job's body, and the memory reserved for it; null for a small one. */
export interface ReadJobBody {
  readonly job: Job;
  readonly memory: BudgetShare | null;
}

/**
 * Returns null if the body is gone.
 * @throws the signal's reason when it is aborted
 */
export async function readJobBody(
  { payloads, jobMemory }: JobDeps,
  { id, accountId, body, bytes }: TakenJob,
  signal: AbortSignal,
): Promise<ReadJobBody | null> {
  if (body !== null) return { job: (JSON.parse(body.toString('utf8')) as JobBody).job, memory: null };
  const memory = await jobMemory.acquire(accountId, bytes * memoryPerByte, {
    signal,
    waitMs: Infinity,
    createError: () => new AppError('queue_full'),
  });
  try {
    const chunks = payloads.readKey(redisKeys.jobBody(accountId, id));
    const parsed = await readJson(chunks, accountId);
    if (parsed !== null) return { job: (parsed.value as JobBody).job, memory };
    memory.release();
    return null;
  } catch (error) {
    memory.release();
    throw error;
  }
}

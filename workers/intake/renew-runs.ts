import type { JobTurns } from '../../shared/jobs/job-turns-store.ts';
import { jobLeaseMs, renewJobs } from '../../shared/jobs/run-job-scripts.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { JobCancelled, RunReplaced } from '../runs/job-context.ts';
import type { JobRun } from './job-run.ts';

export interface Renewal {
  readonly redis: RedisClient;
  readonly turns: Pick<JobTurns, 'renewed'>;
  /** The runs that this worker has taken, by job ID. */
  readonly active: ReadonlyMap<string, Pick<JobRun, 'line' | 'taken' | 'hasBegun'>>;
  readonly log: Logger;
}

/**
 * Renews the leases of the jobs that this worker runs, and stops jobs that it must not run.
 * @param stop ends a run with this reason
 */
export async function renewRuns(
  { redis, turns, active, log }: Renewal,
  stop: (jobId: string, reason: Error) => void,
): Promise<void> {
  const before = [...active.values()];
  if (before.length === 0) return;
  try {
    const stopped = await renewJobs(
      redis,
      before.map(({ taken }) => taken),
    );
    // A run may have ended meanwhile, and the worker may have taken the same job again.
    for (const run of before.filter(({ taken }) => stopped.has(taken.id))) {
      if (active.get(run.taken.id) !== run) continue;
      stop(run.taken.id, stopped.get(run.taken.id) === 'cancelled' ? new JobCancelled() : new RunReplaced());
    }
    // Reads the active runs again: a run that ended meanwhile would count as running until its lease expires.
    const running = [...active.values()].filter(({ hasBegun }) => hasBegun);
    await turns.renewed(
      running.map(({ line, taken }) => ({ line, jobId: taken.id })),
      jobLeaseMs,
    );
  } catch (error) {
    log.debug({ err: error }, 'leases of jobs could not be renewed');
  }
}

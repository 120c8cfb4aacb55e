import type { JobTurns } from '../../shared/work/jobs/job-turns-store.ts';
import { renewJobs, type StopReason } from '../../shared/work/jobs/run-job-scripts.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { JobCancelled, RunReplaced } from '../runs/job-context.ts';
import type { JobRun } from './job-run.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';

export interface Renewal {
  readonly redis: RedisClient;
  readonly turns: Pick<JobTurns, 'renewLeases'>;
  /** The jobs that this worker has taken, by job ID. */
  readonly active: ReadonlyMap<string, Pick<JobRun, 'line' | 'taken' | 'hasBegun'>>;
  readonly log: Logger;
}

/**
 * Renews the leases of this worker's jobs, and stops jobs that it must no longer run.
 * @param stop cancels a run with this reason
 */
export async function renewRuns(
  { redis, turns, active, log }: Renewal,
  stop: (jobId: string, reason: Error) => void,
): Promise<void> {
  const runsBefore = [...active.values()];
  if (runsBefore.length === 0) return;
  try {
    const stoppedJobs = await renewJobs(
      redis,
      runsBefore.map(({ taken }) => taken),
    );
    // During the call, a run may have ended and the worker may have taken the same job again.
    for (const run of runsBefore.filter(({ taken }) => stoppedJobs.has(taken.id))) {
      if (active.get(run.taken.id) !== run) continue;
      stop(run.taken.id, toReason(stoppedJobs.get(run.taken.id)!));
    }
    // Read the active runs again: otherwise, a run that ended during the call would be recorded as running until its
    // lease expires.
    const running = [...active.values()].filter(({ hasBegun }) => hasBegun);
    await turns.renewLeases(
      running.map(({ line, taken }) => ({ line, jobId: taken.id })),
      liveness.job.deadMs,
    );
  } catch (error) {
    log.debug({ err: error }, 'renewing the leases of jobs failed');
  }
}

function toReason(reason: StopReason): Error {
  if (reason === 'gone') return new RunReplaced();
  return new JobCancelled({ isOverdue: reason === 'overdue' });
}

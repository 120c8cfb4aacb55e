import { estimateEta, estimateRemainingSeconds } from '../../shared/jobs/job-outlook.ts';
import type { JobOutlooks } from '../../shared/jobs/job-outlooks.ts';
import { estimatePosition } from '../../shared/jobs/job-position.ts';
import { hasEnded, type JobRecord } from '../../shared/jobs/job-record.ts';
import type { FoundJob, JobStore } from '../../shared/jobs/job-store.ts';
import { noEstimate, type JobEstimate } from '../../shared/jobs/present-job.ts';

/** Estimates the positions of jobs among those of all accounts, and when they will finish. */
export class JobStandings {
  readonly #store: Pick<JobStore, 'recordPosition'>;
  readonly #outlooks: Pick<JobOutlooks, 'get'>;

  constructor(store: Pick<JobStore, 'recordPosition'>, outlooks: Pick<JobOutlooks, 'get'>) {
    this.#store = store;
    this.#outlooks = outlooks;
  }

  /** @throws AppError `service_unavailable` while Redis is down */
  async find({ job, rank, nowMs }: FoundJob): Promise<JobEstimate> {
    if (hasEnded(job)) return noEstimate;
    const outlook = await this.#outlooks.get({ queue: job.queue, model: job.model });
    if (job.status === 'active') {
      const sinceMs = job.transitions.at(-1)?.atMs ?? job.createdAtMs;
      return { position: null, etaSeconds: estimateRemainingSeconds(outlook, Math.max(0, nowMs - sinceMs)) };
    }
    // A null rank means that a worker has taken the job and waits for a call slot, so no waiting job is ahead of it.
    const estimated = rank === null ? 0 : estimatePosition(outlook, job.accountId, rank);
    const position = await this.#capPosition(job, estimated);
    return { position, etaSeconds: estimateEta(outlook, position) };
  }

  /**
   * Ensures that the reported position never rises. Calls Redis only if the estimate is lower than the last reported
   * position.
   */
  async #capPosition({ accountId, id, position }: JobRecord, estimated: number): Promise<number> {
    if (position !== null && position <= estimated) return position;
    return await this.#store.recordPosition(accountId, id, estimated);
  }
}

import { estimateEta, estimateRest } from '../../shared/jobs/job-outlook.ts';
import type { JobOutlooks } from '../../shared/jobs/job-outlooks.ts';
import { estimatePosition } from '../../shared/jobs/job-position.ts';
import { hasEnded, type JobRecord } from '../../shared/jobs/job-record.ts';
import type { FoundJob, JobStore } from '../../shared/jobs/job-store.ts';
import { noStanding, type JobStanding } from '../../shared/jobs/present-job.ts';

/** Where jobs stand among those of all accounts, and when they will have ended. */
export class JobStandings {
  readonly #store: Pick<JobStore, 'tellPosition'>;
  readonly #outlooks: Pick<JobOutlooks, 'get'>;

  constructor(store: Pick<JobStore, 'tellPosition'>, outlooks: Pick<JobOutlooks, 'get'>) {
    this.#store = store;
    this.#outlooks = outlooks;
  }

  /** @throws AppError `service_unavailable` while Redis is away */
  async find({ job, rank, nowMs }: FoundJob): Promise<JobStanding> {
    if (hasEnded(job)) return noStanding;
    const outlook = await this.#outlooks.get({ queue: job.queue, model: job.model });
    if (job.status === 'active') {
      const sinceMs = job.transitions.at(-1)?.atMs ?? job.createdAtMs;
      return { position: null, etaSeconds: estimateRest(outlook, Math.max(0, nowMs - sinceMs)) };
    }
    // A worker that waits for a slot at a vendor has taken it: none of those that still wait is before it.
    const estimated = rank === null ? 0 : estimatePosition(outlook, job.accountId, rank);
    const position = await this.#neverRise(job, estimated);
    return { position, etaSeconds: estimateEta(outlook, position) };
  }

  /** Asks Redis only where the position is lower than what was told before. */
  async #neverRise({ accountId, id, position }: JobRecord, estimated: number): Promise<number> {
    if (position !== null && position <= estimated) return position;
    return await this.#store.tellPosition(accountId, id, estimated);
  }
}

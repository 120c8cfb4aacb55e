import type { JobLine } from '../../shared/work/jobs/job-line.ts';
import {
  estimateEta,
  estimateRemainingSeconds,
  type JobOutlook,
} from '../../shared/work/jobs/job-outlook.ts';
import type { JobOutlooks } from './job-outlooks.ts';
import { estimatePosition } from './job-position.ts';
import { hasEnded, type JobRecord } from '../../shared/work/jobs/job-record.ts';
import type { FoundJob, JobStore, ReportedPosition } from '../../shared/work/jobs/job-store.ts';
import { noEstimate, type JobEstimate } from '../../shared/work/jobs/present-job.ts';

/** Estimates the positions of jobs among those of all accounts, and when they will finish. */
export class JobStandings {
  readonly #store: Pick<JobStore, 'recordPositions'>;
  readonly #outlooks: Pick<JobOutlooks, 'get'>;

  constructor(store: Pick<JobStore, 'recordPositions'>, outlooks: Pick<JobOutlooks, 'get'>) {
    this.#store = store;
    this.#outlooks = outlooks;
  }

  /** @throws AppError `service_unavailable` while Redis is down */
  async find(found: FoundJob): Promise<JobEstimate> {
    const [estimate] = await this.findAll(found.job.accountId, [found]);
    return estimate!;
  }

  /**
   * Estimates for jobs of one account, in their order. Calls Redis at most once, apart from outlooks that are not known.
   * @throws AppError `service_unavailable` while Redis is down
   */
  async findAll(accountId: string, found: readonly FoundJob[]): Promise<JobEstimate[]> {
    const outlooks = await this.#readOutlooks(found);
    const outlookOf = ({ job }: FoundJob): JobOutlook => outlooks.get(nameOf(job))!;
    const waiting = found.filter(({ job }) => job.status === 'queued');
    const positions = await this.#capPositions(
      accountId,
      waiting.map((one) => ({ job: one.job, estimated: estimateOwn(outlookOf(one), one) })),
    );
    return found.map((one) => {
      const { job, nowMs } = one;
      if (hasEnded(job)) return noEstimate;
      if (job.status === 'active') {
        const sinceMs = job.transitions.at(-1)?.atMs ?? job.createdAtMs;
        const etaSeconds = estimateRemainingSeconds(outlookOf(one), Math.max(0, nowMs - sinceMs));
        return { position: null, etaSeconds };
      }
      const position = positions.get(job.id)!;
      return { position, etaSeconds: estimateEta(outlookOf(one), position) };
    });
  }

  async #readOutlooks(found: readonly FoundJob[]): Promise<ReadonlyMap<string, JobOutlook>> {
    const unfinished = found.map(({ job }) => job).filter((job) => !hasEnded(job));
    const lines = new Map(unfinished.map((job) => [nameOf(job), job]));
    const read = async ([name, line]: readonly [string, JobLine]) =>
      [name, await this.#outlooks.get({ queue: line.queue, model: line.model })] as const;
    return new Map(await Promise.all([...lines].map(read)));
  }

  /**
   * Ensures that a reported position never rises. Calls Redis only if an estimate is lower than the last reported
   * position.
   * @returns the positions to report, by the job's id
   */
  async #capPositions(
    accountId: string,
    jobs: readonly { readonly job: JobRecord; readonly estimated: number }[],
  ): Promise<ReadonlyMap<string, number>> {
    const positions = new Map<string, number>();
    const lower: ReportedPosition[] = [];
    for (const { job, estimated } of jobs) {
      if (job.position !== null && job.position <= estimated) positions.set(job.id, job.position);
      else lower.push({ id: job.id, position: estimated });
    }
    if (lower.length === 0) return positions;
    const lowest = await this.#store.recordPositions(accountId, lower);
    for (const [i, { id }] of lower.entries()) positions.set(id, lowest[i]!);
    return positions;
  }
}

const nameOf = ({ queue, model }: JobLine): string => `${queue}:${model}`;

/** A null rank means that a worker has taken the job and waits for a call slot, so no waiting job is ahead of it. */
const estimateOwn = (outlook: JobOutlook, { job, rank }: FoundJob): number =>
  rank === null ? 0 : estimatePosition(outlook, job.accountId, rank);

import type { JobView } from '../../api/jobs/job-text.ts';
import type { JobStatus } from '../../shared/contract/job-terms.ts';
import type { JobRecord } from '../../shared/work/jobs/job-record.ts';

export const shownJobId = '019aa64f-d5de-7c5b-9a51-0c2f7e8d4b16';

interface State {
  readonly position?: number;
  readonly progress?: number;
}

/** A job that has had these statuses in this order, each for a tenth of a second. */
export function showJob(statuses: readonly JobStatus[], { position = 0, progress = 0 }: State = {}): JobView {
  const status = statuses.at(-1)!;
  const job: JobRecord = {
    id: shownJobId,
    accountId: 'account',
    status,
    operation: 'chat.completions',
    queue: 'chat',
    model: 'm',
    createdAtMs: 1_000,
    deadlineAtMs: 9_000,
    transitions: statuses.map((one, i) => ({ status: one, atMs: 1_000 + i * 100 })),
    attempts: 1,
    workerId: null,
    isCancelRequested: false,
    cancelAtMs: null,
    format: null,
    progress,
    position: null,
    error: status === 'failed' ? { code: 'upstream_error', message: 'broken' } : null,
    isResponseDeleted: false,
    receipt: null,
    webhook: null,
  };
  return { job, estimate: { position: status === 'queued' ? position : null, etaSeconds: null } };
}

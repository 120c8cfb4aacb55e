import type { AppError } from '../../../shared/contract/errors.ts';
import { eventIdSuffix } from '../../../shared/contract/event-id.ts';
import { hasEnded, type JobRecord } from '../../../shared/work/jobs/job-record.ts';
import { noEstimate } from '../../../shared/work/jobs/present-job.ts';
import { frameJob, type JobView } from '../../jobs/job-text.ts';

/**
 * Identifies an event of a job by the contents of the job record, so that any process can resume after it. Consists of
 * the index of the status transition, starting at 0, and the progress within that status. While the job is queued,
 * `detail` is the position, which never rises. While the job is active, `detail` is the percentage done, which never
 * falls.
 */
export interface EventId {
  readonly index: number;
  readonly detail: number;
}

export interface JobEvent extends JobView {
  readonly id: EventId;
  /** Whether no event follows. */
  readonly isLast: boolean;
}

const eventIdPattern = /^(\d{1,6})\.(\d{1,9})\.([\da-f]+)$/;

export const writeEventId = ({ index, detail }: EventId, jobId: string): string =>
  `${index}.${detail}.${eventIdSuffix(jobId)}`;

/** Returns null for another job's id. */
export function parseEventId(text: string | undefined, jobId: string): EventId | null {
  const [, index, detail, suffix] = eventIdPattern.exec(text?.trim() ?? '') ?? [];
  return suffix === eventIdSuffix(jobId) ? { index: Number(index), detail: Number(detail) } : null;
}

/** Lists the job's events after the given one, in order; all events if `after` is null or never existed. */
export function listJobEvents(view: JobView, after: EventId | null): JobEvent[] {
  const last = view.job.transitions.length - 1;
  const known = after === null || after.index > last ? null : after;
  const current = describeCurrent(view);
  const events: JobEvent[] = [];
  for (let index = (known?.index ?? -1) + 1; index < last; index++)
    events.push(describePast(view.job, index));
  if (known === null || known.index < last || isLater(view.job, current.id, known)) events.push(current);
  return events;
}

function describeCurrent({ job, estimate }: JobView): JobEvent {
  const detail =
    job.status === 'queued'
      ? (estimate.position ?? 0)
      : job.status === 'active'
        ? Math.floor((job.progress ?? 0) * 100)
        : 0;
  return { id: { index: job.transitions.length - 1, detail }, job, estimate, isLast: hasEnded(job) };
}

/** Describes the last event of an earlier status. */
function describePast(job: JobRecord, index: number): JobEvent {
  const transitions = job.transitions.slice(0, index + 1);
  const { status } = transitions[index]!;
  const past: JobRecord = {
    ...job,
    status,
    transitions,
    isCancelRequested: false,
    error: null,
    receipt: null,
  };
  const detail = status === 'active' ? 100 : 0;
  return { id: { index, detail }, job: past, estimate: noEstimate, isLast: false };
}

/** Compares two events of the job's current status. */
function isLater({ status }: JobRecord, a: EventId, b: EventId): boolean {
  return status === 'queued' ? a.detail < b.detail : a.detail > b.detail;
}

/**
 * Returns the two texts that surround the job's response in an event.
 * @param failure why the response cannot be read; null if it can, or if there is none
 * @param publicUrl of the gateway
 */
export function frameJobEvent(
  event: JobEvent,
  failure: AppError | null,
  publicUrl: string,
): [before: string, end: string] {
  const { id, job } = event;
  const [before, end] = frameJob(event, failure, publicUrl);
  return [`id: ${writeEventId(id, job.id)}\nevent: ${job.status}\ndata: ${before}`, `${end}\n\n`];
}

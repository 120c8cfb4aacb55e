import type { AppError } from '../../shared/contract/errors.ts';
import { hasEnded, type JobRecord } from '../../shared/jobs/job-record.ts';
import { noStanding } from '../../shared/jobs/present-job.ts';
import { frameJob, type ShownJob } from './job-text.ts';

/**
 * Names an event of a job by what its record says, so that any process can go on from it: which change of the status it
 * tells of, counted from 0, and how far that status has come. That is the position while the job is queued, which only
 * falls, and the percentage that is done while it is active, which only rises.
 */
export interface EventId {
  readonly index: number;
  readonly detail: number;
}

export interface JobEvent extends ShownJob {
  readonly id: EventId;
  /** No event comes after it. */
  readonly isLast: boolean;
}

const written = /^(\d{1,6})\.(\d{1,9})\.([\da-f]+)$/;

/** The end of a job's id differs from that of another: a reader who mixes up two of them misses nothing. */
const markOf = (jobId: string): string => jobId.slice(-8);

export const writeEventId = ({ index, detail }: EventId, jobId: string): string =>
  `${index}.${detail}.${markOf(jobId)}`;

/** Null for one that is none of this job. */
export function parseEventId(text: string | undefined, jobId: string): EventId | null {
  const [, index, detail, mark] = written.exec(text?.trim() ?? '') ?? [];
  return mark === markOf(jobId) ? { index: Number(index), detail: Number(detail) } : null;
}

/** The events of a job that come after this one, in their order; all of them after null, or after one that never was. */
export function listJobEvents(shown: ShownJob, after: EventId | null): JobEvent[] {
  const last = shown.job.transitions.length - 1;
  const known = after === null || after.index > last ? null : after;
  const current = describeCurrent(shown);
  const events: JobEvent[] = [];
  for (let index = (known?.index ?? -1) + 1; index < last; index++)
    events.push(describePast(shown.job, index));
  if (known === null || known.index < last || isLater(shown.job, current.id, known)) events.push(current);
  return events;
}

function describeCurrent({ job, standing }: ShownJob): JobEvent {
  const detail =
    job.status === 'queued'
      ? (standing.position ?? 0)
      : job.status === 'active'
        ? Math.floor((job.progress ?? 0) * 100)
        : 0;
  return { id: { index: job.transitions.length - 1, detail }, job, standing, isLast: hasEnded(job) };
}

/** The job as it was when a status was over: nothing of that status comes after such an event. */
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
  return { id: { index, detail }, job: past, standing: noStanding, isLast: false };
}

/** Of two events of the status that the job has now. */
function isLater({ status }: JobRecord, a: EventId, b: EventId): boolean {
  return status === 'queued' ? a.detail < b.detail : a.detail > b.detail;
}

/**
 * The text of an event up to the response of its job, and the text after that.
 * @param failure why the response cannot be read now; null where it can, or there is none
 */
export function frameJobEvent(event: JobEvent, failure: AppError | null): [before: string, behind: string] {
  const { id, job } = event;
  const [before, behind] = frameJob(event, failure);
  return [`id: ${writeEventId(id, job.id)}\nevent: ${job.status}\ndata: ${before}`, `${behind}\n\n`];
}

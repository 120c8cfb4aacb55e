import type { ErrorCode } from '../contract/error-kinds.ts';
import { parseReservation, type Reservation } from '../billing/reservation-store.ts';
import type { QueueName } from '../queue/job-kinds.ts';

/** As callers see them; a job has one at a time. */
export const jobStatuses = ['queued', 'active', 'succeeded', 'failed', 'cancelled'] as const;
export type JobStatus = (typeof jobStatuses)[number];

/** In Redis a status is its first letter. */
export const statusLetter = (status: JobStatus): string => status[0]!;

/** How long a job that has ended, and its answer, can be asked for. */
export const jobLifetimeMs = 24 * 60 * 60_000;

/** A job that has begun has met its caller's deadline. Where its worker dies or stops, it must begin again within this. */
export const beginAgainMs = 24 * 60 * 60_000;

/** What created the job: the path of its operation below `/v1/`, with dots. */
export type JobOperation = 'chat.completions' | 'images.generations' | 'images.edits' | 'embeddings';

/** A change of status, and when it happened. */
export interface JobTransition {
  readonly status: JobStatus;
  readonly atMs: number;
}

/** A durable job, as Redis keeps it. All of its times are of Redis's clock. */
export interface JobRecord {
  readonly id: string;
  readonly accountId: string;
  readonly status: JobStatus;
  readonly operation: JobOperation;
  readonly queue: QueueName;
  readonly model: string;
  readonly createdAtMs: number;
  /** Until when it must have started. */
  readonly deadlineAtMs: number;
  readonly transitions: readonly JobTransition[];
  /** How many workers have taken it. */
  readonly attempts: number;
  /** The worker that has it now. */
  readonly workerId: string | null;
  readonly isCancelRequested: boolean;
  /** Of embeddings: how vectors are written. */
  readonly format: string | null;
  /** From 0 to 1, where the work tells it. */
  readonly progress: number | null;
  /** The lowest place in the line that was ever told; null where none was. */
  readonly position: number | null;
  readonly error: { readonly code: ErrorCode; readonly message: string } | null;
  /** What was charged; null until it has ended. */
  readonly receipt: { readonly costNano: bigint; readonly free: boolean } | null;
  /** Null where the caller named none. */
  readonly webhook: { readonly url: string; readonly report: string | null } | null;
}

/** Milliseconds of the first transition to one of these statuses; null where there is none. */
export function findTransition(
  { transitions }: Pick<JobRecord, 'transitions'>,
  ...statuses: JobStatus[]
): number | null {
  return transitions.find(({ status }) => statuses.includes(status))?.atMs ?? null;
}

export const hasEnded = ({ status }: Pick<JobRecord, 'status'>): boolean =>
  status !== 'queued' && status !== 'active';

export const statusOf = (letter: string | undefined): JobStatus =>
  jobStatuses.find((status) => statusLetter(status) === letter) ?? 'queued';

/** @returns null where there is no such job */
export function parseJob(
  accountId: string,
  id: string,
  fields: Readonly<Record<string, string>>,
): JobRecord | null {
  if (fields['st'] === undefined) return null;
  const { cost, url, code } = fields;
  return {
    id,
    accountId,
    status: statusOf(fields['st']),
    operation: fields['op'] as JobOperation,
    queue: fields['q'] as QueueName,
    model: fields['m'] ?? '',
    createdAtMs: Number(fields['at']),
    deadlineAtMs: Number(fields['dl']),
    transitions: (fields['log'] ?? '').split(' ').map((entry) => ({
      status: statusOf(entry[0]),
      atMs: Number(entry.slice(1)),
    })),
    attempts: Number(fields['n'] ?? 0),
    workerId: fields['w'] ?? null,
    isCancelRequested: fields['cx'] === '1',
    format: fields['fm'] ?? null,
    progress: fields['pg'] === undefined ? null : Number(fields['pg']),
    position: fields['pos'] === undefined ? null : Number(fields['pos']),
    error: code === undefined ? null : { code: code as ErrorCode, message: fields['msg'] ?? '' },
    receipt: cost === undefined ? null : { costNano: BigInt(cost), free: fields['free'] === '1' },
    webhook: url === undefined ? null : { url, report: fields['wh'] ?? null },
  };
}

/** What is known of a job when it is made. */
export interface NewJobFields extends Pick<
  JobRecord,
  'id' | 'accountId' | 'queue' | 'model' | 'operation' | 'format'
> {
  /** From the admission of its request until it must have started. */
  readonly timeoutMs: number;
  /** Null where the caller named none. */
  readonly webhookUrl: string | null;
}

/** The record of a job that was made just now, as reading it would give it. */
export function describeNewJob(made: NewJobFields, createdAtMs: number, deadlineAtMs: number): JobRecord {
  const { id, accountId, queue, model, operation, format, webhookUrl } = made;
  return {
    id,
    accountId,
    status: 'queued',
    operation,
    queue,
    model,
    createdAtMs,
    deadlineAtMs,
    transitions: [{ status: 'queued', atMs: createdAtMs }],
    attempts: 0,
    workerId: null,
    isCancelRequested: false,
    format,
    progress: null,
    position: null,
    error: null,
    receipt: null,
    webhook: webhookUrl === null ? null : { url: webhookUrl, report: null },
  };
}

/** What a job that has not ended reserves; null where it has. */
export function parseJobHold(accountId: string, id: string, hold: string | null): Reservation | null {
  return hold === null ? null : parseReservation(id, `${accountId} ${hold}`);
}

import { jobStatuses, type JobOperation, type JobStatus } from '../../contract/job-terms.ts';
import type { ErrorCode } from '../../contract/error-kinds.ts';
import type { QueueName } from '../queue/job-kinds.ts';

/** Redis stores a status as its first letter. */
export const statusLetter = (status: JobStatus): string => status[0]!;

/** How long an ended job and its response stay available. */
export const jobLifetimeMs = 24 * 60 * 60_000;

/**
 * The deadline for starting again if the worker of a started job dies or stops. The caller's own deadline was met by
 * the first start.
 */
export const restartWindowMs = 24 * 60 * 60_000;

/** A status change and its time. */
export interface JobTransition {
  readonly status: JobStatus;
  readonly atMs: number;
}

/** A durable job as stored in Redis. All times are from Redis's clock. */
export interface JobRecord {
  readonly id: string;
  readonly accountId: string;
  readonly status: JobStatus;
  readonly operation: JobOperation;
  readonly queue: QueueName;
  readonly model: string;
  readonly createdAtMs: number;
  /** Deadline for starting the job. */
  readonly deadlineAtMs: number;
  readonly transitions: readonly JobTransition[];
  /** How many workers have taken the job. */
  readonly attempts: number;
  /** The worker that has the job now. */
  readonly workerId: string | null;
  readonly isCancelRequested: boolean;
  /** For embeddings: how vectors are encoded. */
  readonly format: string | null;
  /** From 0 to 1. Null if the work does not report it. */
  readonly progress: number | null;
  /** The lowest queue position ever reported. Null if none was reported. */
  readonly position: number | null;
  readonly error: { readonly code: ErrorCode; readonly message: string } | null;
  /** What was charged. Null until the job has ended. */
  readonly receipt: { readonly costNano: bigint; readonly free: boolean } | null;
  /** Null if the caller gave none. */
  readonly webhook: { readonly url: string; readonly report: string | null } | null;
}

/** Returns the time in milliseconds of the first transition to one of these statuses, or null. */
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

/**
 * Parses a job from the fields of its Redis hash.
 * @returns null if there is no such job
 */
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

/** The fields of a job that are known when it is created. */
export interface NewJobFields extends Pick<
  JobRecord,
  'id' | 'accountId' | 'queue' | 'model' | 'operation' | 'format'
> {
  /** Milliseconds from the admission of its request to the deadline for starting. */
  readonly timeoutMs: number;
  /** Null if the caller gave none. */
  readonly webhookUrl: string | null;
}

/** Builds the record of a job that was just created, as reading it from Redis would. */
export function describeNewJob(newJob: NewJobFields, createdAtMs: number, deadlineAtMs: number): JobRecord {
  const { id, accountId, queue, model, operation, format, webhookUrl } = newJob;
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

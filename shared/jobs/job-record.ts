import { jobStatuses, type JobOperation, type JobStatus } from '../contract/job-terms.ts';
import type { ErrorCode } from '../contract/error-kinds.ts';
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

/** The fields of a job's Redis hash that `parseJob` needs, in its order. The first three are read by scripts, too. */
export const jobFields = [
  ...['st', 'q', 'm', 'op', 'at', 'dl', 'log', 'n', 'w', 'cx'],
  ...['fm', 'pg', 'pos', 'code', 'msg', 'cost', 'free', 'url', 'wh'],
] as const;

/**
 * Parses a job from the values of `jobFields`.
 * @returns null if there is no such job
 */
export function parseJob(
  accountId: string,
  id: string,
  values: readonly (string | null)[],
): JobRecord | null {
  const [st, q, m, op, at, dl, log, n, w, cx, fm, pg, pos, code, msg, cost, free, url, wh] = values;
  if (!st) return null;
  return {
    id,
    accountId,
    status: statusOf(st),
    operation: op as JobOperation,
    queue: q as QueueName,
    model: m ?? '',
    createdAtMs: Number(at),
    deadlineAtMs: Number(dl),
    transitions: (log ?? '').split(' ').map((entry) => ({
      status: statusOf(entry[0]),
      atMs: Number(entry.slice(1)),
    })),
    attempts: Number(n ?? 0),
    workerId: w ?? null,
    isCancelRequested: cx === '1',
    format: fm ?? null,
    progress: toNumber(pg),
    position: toNumber(pos),
    error: code ? { code: code as ErrorCode, message: msg ?? '' } : null,
    receipt: cost ? { costNano: BigInt(cost), free: free === '1' } : null,
    webhook: url ? { url, report: wh ?? null } : null,
  };
}

const toNumber = (text: string | null | undefined): number | null =>
  text === null || text === undefined ? null : Number(text);

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

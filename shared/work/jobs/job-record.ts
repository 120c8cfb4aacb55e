import {
  jobStatuses,
  jobWebhookEvents,
  type JobOperation,
  type JobStatus,
  type JobWebhookEvent,
} from '../../contract/job-terms.ts';
import type { ErrorCode } from '../../contract/error-kinds.ts';
import type { ErrorDetails } from '../../contract/errors.ts';
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
  /** When the job is cancelled unless it has ended. Null if its caller set no time. */
  readonly cancelAtMs: number | null;
  /** For embeddings: how vectors are encoded. */
  readonly format: string | null;
  /** From 0 to 1. Null if the work does not report it. */
  readonly progress: number | null;
  /** The lowest queue position ever reported. Null if none was reported. */
  readonly position: number | null;
  readonly error: ({ readonly code: ErrorCode; readonly message: string } & ErrorDetails) | null;
  /** Whether its caller has had its response deleted. */
  readonly isResponseDeleted: boolean;
  /** What was charged. Null until the job has ended. */
  readonly receipt: { readonly costNano: bigint; readonly free: boolean } | null;
  /** Null if the caller gave none. */
  readonly webhook: JobRecordWebhook | null;
}

export interface JobRecordWebhook {
  readonly url: string;
  /** What it is called for. */
  readonly events: readonly JobWebhookEvent[];
  /** The state of the webhook of the job's end, as JSON; null before its first attempt. */
  readonly report: string | null;
  /** The public URL of the gateway, which the process that sends the webhook may not know. */
  readonly publicUrl: string;
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

/** Redis stores an event as its first letter. */
export const writeWebhookEvents = (events: readonly JobWebhookEvent[]): string =>
  events.map((event) => event[0]).join('');

const readWebhookEvents = (letters: string): readonly JobWebhookEvent[] =>
  jobWebhookEvents.filter((event) => letters.includes(event[0]!));

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
  const { cost, url, code, ca: cancelAt, fd: details = '{}' } = fields;
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
    cancelAtMs: cancelAt === undefined ? null : Number(cancelAt),
    format: fields['fm'] ?? null,
    progress: fields['pg'] === undefined ? null : Number(fields['pg']),
    position: fields['pos'] === undefined ? null : Number(fields['pos']),
    error:
      code === undefined
        ? null
        : { code: code as ErrorCode, message: fields['msg'] ?? '', ...(JSON.parse(details) as ErrorDetails) },
    isResponseDeleted: fields['rd'] === '1',
    receipt: cost === undefined ? null : { costNano: BigInt(cost), free: fields['free'] === '1' },
    webhook:
      url === undefined
        ? null
        : {
            url,
            events: readWebhookEvents(fields['we'] ?? 'e'),
            report: fields['wh'] ?? null,
            publicUrl: fields['pu'] ?? '',
          },
  };
}

/** The fields of a job that are known when it is created. */
export interface NewJobFields extends Pick<
  JobRecord,
  'id' | 'accountId' | 'queue' | 'model' | 'operation' | 'format'
> {
  /** Milliseconds from the admission of its request to the deadline for starting. */
  readonly timeoutMs: number;
  /** Milliseconds from the admission of its request until the job is cancelled. Null or absent for never. */
  readonly cancelAfterMs?: number | null;
  /** Null if the caller gave none. */
  readonly webhookUrl: string | null;
  /** What the webhook is called for. By default, the end of the job. */
  readonly webhookEvents?: readonly JobWebhookEvent[];
  /** The public URL of the gateway, for webhooks. */
  readonly publicUrl?: string;
}

export const defaultWebhookEvents: readonly JobWebhookEvent[] = ['ended'];

/** Builds the record of a job that was just created, as reading it from Redis would. */
export function describeNewJob(newJob: NewJobFields, createdAtMs: number, deadlineAtMs: number): JobRecord {
  const { id, accountId, queue, model, operation, format, cancelAfterMs = null } = newJob;
  const { webhookUrl: url, webhookEvents: events = defaultWebhookEvents, publicUrl = '' } = newJob;
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
    cancelAtMs: cancelAfterMs === null ? null : createdAtMs + cancelAfterMs,
    format,
    progress: null,
    position: null,
    error: null,
    isResponseDeleted: false,
    receipt: null,
    webhook: url === null ? null : { url, events, report: null, publicUrl },
  };
}

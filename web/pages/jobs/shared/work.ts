import type { components, operations } from '../../../generated/api.d.ts';
import type { Tone } from '../../../ui/card.tsx';

export type Batch = components['schemas']['Batch'];
/** What its status and its progress are shown by. */
export type CountedBatch = Pick<Batch, 'status' | 'request_counts' | 'lines_not_run' | 'eta_seconds'>;
export type Job = components['schemas']['Job'];
export type JobSummary = components['schemas']['JobSummary'];
export type JobStatus = JobSummary['status'];
export type BatchEndpoint = components['schemas']['FileCostEstimate']['endpoint'];
export type JobFilter = NonNullable<NonNullable<operations['listJobs']['parameters']['query']>['status']>;

type ChatResponse = components['schemas']['ChatResponse'];
type ImageResponse = components['schemas']['ImageResponse'];
type EmbeddingResponse = components['schemas']['EmbeddingResponse'];

/** A response, with what it is. */
export type KnownResponse =
  | { readonly kind: 'chat'; readonly body: ChatResponse }
  | { readonly kind: 'images'; readonly body: ImageResponse }
  | { readonly kind: 'embeddings'; readonly body: EmbeddingResponse };

export function readResponse(body: ChatResponse | ImageResponse | EmbeddingResponse): KnownResponse {
  if ('choices' in body) return { kind: 'chat', body };
  return 'object' in body ? { kind: 'embeddings', body } : { kind: 'images', body };
}

export const jobStatuses: readonly JobFilter[] = ['queued', 'active', 'succeeded', 'failed', 'cancelled'];

export const hasJobEnded = ({ status }: Pick<JobSummary, 'status'>): boolean =>
  status !== 'queued' && status !== 'active';

const finalStatuses: readonly Batch['status'][] = ['completed', 'failed', 'expired', 'cancelled'];

export const hasBatchEnded = ({ status }: Pick<Batch, 'status'>): boolean => finalStatuses.includes(status);

interface ShownStatus {
  readonly key: JobStatus | Batch['status'] | 'completedPartly';
  readonly tone: Tone;
}

const jobTones: Readonly<Record<JobStatus, Tone>> = {
  queued: 'neutral',
  active: 'accent',
  succeeded: 'good',
  failed: 'bad',
  cancelled: 'neutral',
};

export function describeJobStatus(job: Pick<JobSummary, 'status' | 'cancel_requested'>): ShownStatus {
  if (job.cancel_requested && !hasJobEnded(job)) return { key: 'cancelling', tone: 'warning' };
  return { key: job.status, tone: jobTones[job.status] };
}

const batchTones: Readonly<Record<Batch['status'], Tone>> = {
  validating: 'neutral',
  in_progress: 'accent',
  finalizing: 'accent',
  completed: 'good',
  failed: 'bad',
  expired: 'warning',
  cancelling: 'warning',
  cancelled: 'neutral',
};

/** How many lines have run, and failed; those that were not run are in the error file, too. */
export function countRun({ request_counts: counts, lines_not_run: notRun }: CountedBatch) {
  const failed = counts.failed - notRun;
  return { failed, done: counts.completed + failed };
}

export function describeBatchStatus({ status, request_counts: counts }: CountedBatch): ShownStatus {
  if (status === 'completed' && counts.failed > 0) return { key: 'completedPartly', tone: 'warning' };
  return { key: status, tone: batchTones[status] };
}

/** The lines that have run, as a share from 0 to 1. */
export const findShare = (batch: CountedBatch): number =>
  batch.request_counts.total === 0 ? 0 : countRun(batch).done / batch.request_counts.total;

/** Times of batches are in seconds, as in OpenAI's API. */
export const toIso = (seconds: number): string => new Date(seconds * 1_000).toISOString();

/** When the batch reached its final status, in seconds; null while it has none. */
export const findBatchEnd = (batch: Batch): number | null =>
  hasBatchEnded(batch)
    ? (batch.completed_at ?? batch.failed_at ?? batch.expired_at ?? batch.cancelled_at)
    : null;

/** The text of a chat's message: vendors may send it in parts. */
export function readText({ content }: ChatResponse['choices'][number]['message']): string {
  if (!Array.isArray(content)) return content ?? '';
  return content
    .map((part) => (isRecord(part) && typeof part['text'] === 'string' ? part['text'] : ''))
    .join('');
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

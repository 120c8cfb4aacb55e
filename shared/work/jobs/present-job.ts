import { errorKind } from '../../contract/errors.ts';
import { jobPath, type JobSummary, type JobUrls, type JobWebhook } from '../../contract/jobs.ts';
import { toRubNumber } from '../../encoding/money.ts';
import type { WebhookState } from '../webhook-delivery.ts';
import { findTransition, hasEnded, jobLifetimeMs, type JobRecord } from './job-record.ts';

/** A job's position in its model queue and its estimated end. */
export interface JobEstimate {
  /** Number of jobs for the same model that start before it. Null unless it waits. */
  readonly position: number | null;
  /** Seconds until it has ended. Null if unknown. */
  readonly etaSeconds: number | null;
}

export const noEstimate: JobEstimate = { position: null, etaSeconds: null };

/**
 * Converts a job to its public form, without its response.
 * @param publicUrl of the gateway
 */
export function presentJob(
  job: JobRecord,
  { position, etaSeconds }: JobEstimate,
  publicUrl: string,
): JobSummary {
  const isQueued = job.status === 'queued';
  const endedAtMs = findTransition(job, 'succeeded', 'failed', 'cancelled');
  const { error, receipt, webhook } = job;
  return {
    id: job.id,
    object: 'job',
    status: job.status,
    operation: job.operation,
    model: job.model,
    created_at: formatTime(job.createdAtMs),
    started_at: formatOptional(findTransition(job, 'active')),
    ended_at: formatOptional(endedAtMs),
    expires_at: formatOptional(endedAtMs === null ? null : endedAtMs + jobLifetimeMs),
    deadline_at: isQueued ? formatTime(job.deadlineAtMs) : null,
    cancel_at: formatOptional(job.cancelAtMs),
    attempts: job.attempts,
    cancel_requested: job.isCancelRequested,
    position: isQueued ? position : null,
    eta_seconds: hasEnded(job) ? null : etaSeconds,
    progress: job.status === 'succeeded' ? 1 : isQueued ? 0 : (job.progress ?? 0),
    cost_request: receipt === null ? null : toRubNumber(receipt.costNano),
    free_request: receipt === null ? null : receipt.free,
    error:
      error === null ? null : { code: error.code, message: error.message, type: errorKind(error.code).type },
    webhook: webhook === null || !webhook.events.includes('ended') ? null : presentWebhook(webhook),
    urls: presentUrls(job, publicUrl),
  };
}

/** Only the response of a chat can be streamed. */
function presentUrls({ id, operation }: JobRecord, publicUrl: string): JobUrls {
  const url = `${publicUrl}${jobPath(id)}`;
  return {
    get: url,
    cancel: `${url}/cancel`,
    events: `${url}/events`,
    stream: operation === 'chat.completions' ? `${url}/stream` : null,
  };
}

/** The report is the JSON of a WebhookState. There is none before the first attempt. */
function presentWebhook({ url, report }: NonNullable<JobRecord['webhook']>): JobWebhook {
  const state =
    report === null ? null : (JSON.parse(report) as Omit<WebhookState, 'nextAttemptAt'> & NextAttempt);
  return {
    url,
    status: state?.status ?? 'pending',
    attempts: state?.attempts ?? 0,
    last_status: state?.lastStatus ?? null,
    last_error: state?.lastError ?? null,
    next_attempt_at: state?.nextAttemptAt ?? null,
  };
}

/** Dates are strings in JSON. */
interface NextAttempt {
  readonly nextAttemptAt: string | null;
}

const formatTime = (ms: number): string => new Date(ms).toISOString();
const formatOptional = (ms: number | null): string | null => (ms === null ? null : formatTime(ms));

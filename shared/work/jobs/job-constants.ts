import { maxInlineBytes } from '../queue/payload-limits.ts';
import { jobLifetimeMs } from './job-record.ts';

/** Number of failed jobs per account whose bodies stay stored for `admin queue retry`. */
const maxFailedBodies = 1_000;

/**
 * Failure codes that a retry does not fix: the same request would be rejected again, or its caller no longer wants it.
 */
export const finalFailures: readonly string[] = [
  'account_banned',
  'content_too_long',
  'context_length_exceeded',
  'deadline_exceeded',
  'unsafe_url',
  'validation_failed',
];

/** Approximate Redis memory for a job, excluding its body and webhook URL. */
const emptyRecordBytes = 1_500;

/** How long a record outlives its list entries. */
const recordSlackMs = 600_000;

/** For scripts that include job-functions.lua. */
export const jobConstants = {
  emptyRecordBytes,
  finalFailures: ` ${finalFailures.join(' ')} `,
  jobLifetimeMs,
  maxFailedBodies,
  maxInlineBytes,
  recordSlackMs,
} as const;

import type { Batch } from '../jobs/shared/work.ts';
import { findReason, maxShownErrors, useFirstLines } from './read-lines.ts';

/** Codes of lines that fail again unless they are changed. */
const lastingCodes: readonly (string | null)[] = [
  'model_not_found',
  'validation_failed',
  'context_length_exceeded',
  'content_too_long',
  'payload_too_large',
];

/** Whether the lines that failed, as far as they were read, would only fail again. */
export function useMustMendFirst(batch: Batch): boolean {
  const { data } = useFirstLines(
    batch,
    batch.partial_error_file_id,
    batch.request_counts.failed,
    maxShownErrors,
  );
  return (
    data !== undefined &&
    data.length > 0 &&
    data.every((line) => lastingCodes.includes(findReason(line).code))
  );
}

import type { Batch } from '../../contract/batches.ts';
import { toRubNumber } from '../../encoding/money.ts';
import { hasBatchEnded, type BatchRecord, type BatchStatus } from './batch-record.ts';

/**
 * Converts a batch to its public form, as in OpenAI's API.
 * @param nowMs current time
 */
export function presentBatch(batch: BatchRecord, nowMs: number): Batch {
  const { usage, outputFileId, errorFileId, faults } = batch;
  const hasEnded = hasBatchEnded(batch);
  const at = (status: BatchStatus): number | null => toSeconds(batch.reachedAtMs[status]);
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    model: batch.model,
    errors: faults.length === 0 ? null : { object: 'list', data: [...faults] },
    input_file_id: batch.inputFileId,
    completion_window: '24h',
    status: batch.status,
    // Programs take their presence for the end of the batch.
    output_file_id: hasEnded ? outputFileId : null,
    error_file_id: hasEnded ? errorFileId : null,
    created_at: Math.floor(batch.createdAtMs / 1_000),
    in_progress_at: at('in_progress'),
    expires_at: Math.floor(batch.expiresAtMs / 1_000),
    finalizing_at: at('finalizing'),
    completed_at: at('completed'),
    failed_at: at('failed'),
    expired_at: at('expired'),
    cancelling_at: at('cancelling'),
    cancelled_at: at('cancelled'),
    request_counts: { total: batch.lines, completed: batch.succeeded, failed: batch.failed },
    usage: {
      input_tokens: usage.promptTokens,
      input_tokens_details: { cached_tokens: usage.cachedTokens },
      output_tokens: usage.completionTokens,
      output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
      total_tokens: usage.promptTokens + usage.completionTokens,
    },
    metadata: batch.metadata,
    lines_not_run: batch.notRun,
    eta_seconds: hasEnded ? null : estimateEta(batch, nowMs),
    cost: toRubNumber(batch.costNano),
    max_cost: batch.maxCostNano === null ? null : toRubNumber(batch.maxCostNano),
    reserved: toRubNumber(batch.reservedNano),
    partial_output_file_id: outputFileId,
    partial_error_file_id: errorFileId,
  };
}

/** Assumes that the lines that are left end as quickly as those that have ended. Null if none has. */
function estimateEta(batch: BatchRecord, nowMs: number): number | null {
  const startedAtMs = batch.reachedAtMs.in_progress;
  const ended = batch.succeeded + batch.failed;
  if (startedAtMs === undefined || ended === 0) return null;
  const left = Math.max(0, batch.lines - ended);
  return Math.round((Math.max(0, nowMs - startedAtMs) / ended) * left) / 1_000;
}

const toSeconds = (ms: number | undefined): number | null =>
  ms === undefined ? null : Math.floor(ms / 1_000);

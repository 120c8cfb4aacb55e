import { secondsBuckets, type ProcessMetrics } from '../../../shared/platform/metrics/process-metrics.ts';
import type { Operation } from '../../../shared/contract/operation.ts';
import type { AppError } from '../../../shared/contract/errors.ts';

/** A request whose response is closed. */
export interface EndedRequest {
  /** Undefined if no operation has its path. */
  readonly operation: Operation | undefined;
  /** The catalog's id of the model; undefined if the request names none that the catalog has. */
  readonly model: string | undefined;
  readonly status: number;
  /** The error reported in the response, either as its body or as the last event of a stream. */
  readonly error: AppError | undefined;
  /** Whether the caller has received the whole response. */
  readonly isWhole: boolean;
  readonly durationMs: number;
}

/**
 * - `success`
 * - `rejected`: the request was wrong or not allowed
 * - `failed`: the fault of this service or a vendor
 * - `disconnected`: the caller closed the connection, or did not read the response
 */
export type Outcome = 'success' | 'rejected' | 'failed' | 'disconnected';

export function findOutcome({
  status,
  error,
  isWhole,
}: Pick<EndedRequest, 'status' | 'error' | 'isWhole'>): Outcome {
  if (!isWhole) return 'disconnected';
  // An error that ends a stream has another status than the response.
  const final = error?.status ?? status;
  return final >= 500 ? 'failed' : final >= 400 ? 'rejected' : 'success';
}

/** Counts the requests of an api process. */
export class RequestMetrics {
  readonly #ended;
  readonly #durations;

  constructor(metrics: ProcessMetrics) {
    this.#ended = metrics.counter(
      { name: 'requests_total', help: 'Requests by outcome. `code` is that of the error, or `none`.' },
      ['operation', 'model', 'outcome', 'code'],
    );
    this.#durations = metrics.histogram(
      {
        name: 'request_duration_seconds',
        help: 'Time from the head of a request to the end of its response.',
        buckets: [...secondsBuckets.requests],
      },
      ['operation', 'model', 'outcome'],
    );
  }

  note(request: EndedRequest): void {
    const operation = request.operation?.operationId ?? 'other';
    // A name that no model has is the caller's own text.
    const model = request.model ?? (request.operation?.modelTypes === undefined ? 'none' : 'other');
    const outcome = findOutcome(request);
    this.#ended.inc({ operation, model, outcome, code: request.error?.code ?? 'none' });
    this.#durations.observe({ operation, model, outcome }, request.durationMs / 1_000);
  }
}

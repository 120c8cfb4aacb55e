import { secondsBuckets, type ProcessMetrics } from '../../../shared/platform/metrics/process-metrics.ts';
import type { Operation } from '../../../shared/contract/operation.ts';
import type { RequestFacts } from '../../../shared/work/replies/request-facts.ts';
import { findOutcome, type ClosedResponse } from './access-line.ts';

/** A request whose response is closed. */
export interface EndedRequest {
  /** Undefined if no operation has its path. */
  readonly operation: Operation | undefined;
  /** The catalog's id of the model; undefined if the request names none that the catalog has. */
  readonly model: string | undefined;
  readonly response: ClosedResponse;
  readonly durationMs: number;
  /** From the head of the request to the first output of a stream. */
  readonly firstOutputMs?: number | undefined;
  readonly facts?: RequestFacts | undefined;
}

/** Counts the requests of an api process. */
export class RequestMetrics {
  readonly #ended;
  readonly #durations;
  readonly #firstTokens;
  readonly #perToken;

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
    this.#firstTokens = metrics.histogram(
      {
        name: 'time_to_first_token_seconds',
        help: 'Time from the head of a streamed chat to its first output.',
        buckets: [...secondsBuckets.firstToken],
      },
      ['model'],
    );
    this.#perToken = metrics.histogram(
      {
        name: 'time_per_output_token_seconds',
        help: 'Time for each token of a streamed chat after its first output.',
        buckets: [...secondsBuckets.perToken],
      },
      ['model'],
    );
  }

  note(request: EndedRequest): void {
    const operation = request.operation?.operationId ?? 'other';
    // A name that no model has is the caller's own text.
    const model = request.model ?? (request.operation?.modelTypes === undefined ? 'none' : 'other');
    const { response } = request;
    const outcome = findOutcome(response);
    this.#ended.inc({ operation, model, outcome, code: response.error?.code ?? 'none' });
    this.#durations.observe({ operation, model, outcome }, request.durationMs / 1_000);
    if (outcome === 'success' && request.operation?.modelTypes?.includes('chat') === true)
      this.#noteStream(model, request);
  }

  #noteStream(model: string, { firstOutputMs, durationMs, facts }: EndedRequest): void {
    // A replay has no facts, and is as quick as the reader.
    if (firstOutputMs === undefined || facts === undefined) return;
    this.#firstTokens.observe({ model }, firstOutputMs / 1_000);
    const further = facts.completionTokens - 1;
    if (further > 0) this.#perToken.observe({ model }, (durationMs - firstOutputMs) / 1_000 / further);
  }
}

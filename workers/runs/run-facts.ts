import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import type { Span } from '../../shared/platform/tracing/tracing.ts';
import type { RequestFacts } from '../../shared/work/replies/request-facts.ts';
import type { Receipt, RequestOutcome } from '../../shared/work/settlement/finish-request.ts';
import type { CallObserver, EndedCall } from '../routing/call-observer.ts';

/** Gathers what is done for a request, for the access line of its response, the metrics, and its trace. */
export class RunFacts implements CallObserver {
  readonly span: Span | null;
  /** According to `performance.now`. */
  readonly #admittedAtMs: number;
  #upstream: string | null = null;
  #attempts = 0;
  #queueWaitMs: number | null = null;
  #upstreamMs = 0;

  /** @param span of the run; null if it is not traced */
  constructor({ admittedAtMs }: Pick<AdmittedRequest, 'admittedAtMs'>, span: Span | null = null) {
    this.span = span;
    this.#admittedAtMs = performance.now() - (Date.now() - admittedAtMs);
  }

  noteCall({ route, startedAtMs, durationMs }: EndedCall): void {
    this.#queueWaitMs ??= Math.max(0, Math.round(startedAtMs - this.#admittedAtMs));
    this.#upstream = route.upstream.name;
    this.#attempts += 1;
    this.#upstreamMs += durationMs;
  }

  describe(
    { usage, reasoningTokens = 0, reason = null }: RequestOutcome,
    { costNano, free }: Receipt,
  ): RequestFacts {
    return {
      upstream: this.#upstream,
      attempts: this.#attempts,
      queueWaitMs: this.#queueWaitMs,
      upstreamMs: Math.round(this.#upstreamMs),
      promptTokens: usage.promptTokens,
      cachedTokens: usage.cacheReadTokens,
      completionTokens: usage.completionTokens,
      reasoningTokens,
      costNano,
      isFree: free,
      reason,
    };
  }
}

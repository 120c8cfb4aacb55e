import { addCosts, computeVendorCost } from '../routing/vendor-cost.ts';
import { noUsage, type Usage } from '../../shared/catalog/cost.ts';
import { maxCallReason, maxRecordedCalls, type RecordedCall } from '../../shared/ledger/usage-event.ts';
import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import { shorten } from '../../shared/platform/runtime/shorten.ts';
import type { Span } from '../../shared/platform/tracing/tracing.ts';
import type { RequestFacts } from '../../shared/work/replies/request-facts.ts';
import type { Receipt, RequestOutcome } from '../../shared/work/settlement/finish-request.ts';
import type { CallObserver, EndedCall } from '../routing/call-observer.ts';
import type { UpstreamUsage } from '../upstreams/upstream.ts';

/** Gathers what is done for a request, for its row in the log, the access line of its response, the metrics, and its trace. */
export class RunFacts implements CallObserver {
  readonly span: Span | null;
  /** According to `performance.now`. */
  readonly #admittedAtMs: number;
  readonly #calls: RecordedCall[] = [];
  /** Of each of them. */
  readonly #startsMs: number[] = [];
  #attempts = 0;
  #queueWaitMs: number | null = null;
  #upstreamMs = 0;
  /** Of all calls before the last one, all of which failed. */
  #failedCostNano: bigint | null = 0n;
  #last: Pick<EndedCall, 'route' | 'usage' | 'durationMs'> | null = null;

  /** @param span of the run; null if it is not traced */
  constructor({ admittedAtMs }: Pick<AdmittedRequest, 'admittedAtMs'>, span: Span | null = null) {
    this.span = span;
    this.#admittedAtMs = performance.now() - (Date.now() - admittedAtMs);
  }

  noteCall({ route, usage, startedAtMs, durationMs, status, reason }: EndedCall): void {
    const startMs = Math.max(0, Math.round(startedAtMs - this.#admittedAtMs));
    this.#queueWaitMs ??= startMs;
    this.#attempts += 1;
    this.#upstreamMs += durationMs;
    this.#failedCostNano = addCosts(this.#failedCostNano, this.#computeReportedCost());
    this.#last = { route, usage, durationMs };
    if (this.#calls.length === maxRecordedCalls) {
      this.#calls.pop();
      this.#startsMs.pop();
    }
    this.#startsMs.push(startMs);
    const call = [route.upstream.name, Math.round(durationMs)] as const;
    this.#calls.push(reason === null ? call : [...call, status, shorten(reason, maxCallReason - 1)]);
  }

  /** Returns what the row of the request says beside its outcome. */
  record(outcome: RunOutcome): Pick<RequestOutcome, 'calls' | 'callStartsMs' | 'vendorCostNano'> {
    return {
      calls: this.#calls,
      callStartsMs: this.#startsMs,
      vendorCostNano: this.#computeCost(outcome),
    };
  }

  /**
   * A charged request is billed by the vendor for its usage. A failed call is billed for what the vendor has reported
   * of it, and for nothing if it reported nothing.
   */
  #computeCost({ vendorCostNano, vendorUsage, charged, usage }: RunOutcome): bigint | null {
    if (vendorCostNano !== undefined) return vendorCostNano;
    if (this.#last === null) return charged ? null : 0n;
    const billed = vendorUsage ?? (charged ? usage : null);
    const lastCostNano =
      billed === null ? this.#computeReportedCost() : computeVendorCost(this.#last.route, billed);
    return addCosts(this.#failedCostNano, lastCostNano);
  }

  /** Returns what the last call costs according to the vendor's own report. */
  #computeReportedCost(): bigint | null {
    if (this.#last === null || this.#last.usage === null) return 0n;
    const { route, usage, durationMs } = this.#last;
    return computeVendorCost(route, toUsage(usage, durationMs));
  }

  describe(
    { usage, reasoningTokens = 0, reason = null }: RequestOutcome,
    { costNano, free }: Receipt,
  ): RequestFacts {
    return {
      upstream: this.#last?.route.upstream.name ?? null,
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

/** How a run ends. */
export interface RunOutcome extends RequestOutcome {
  /** What the vendor bills, if that is not `usage`: images that were made and are not charged. */
  readonly vendorUsage?: Usage;
}

/** The counts come from the vendor, and may be anything. */
const toCount = (count: number | null): number =>
  count !== null && Number.isSafeInteger(count) && count > 0 ? count : 0;

const toUsage = (usage: UpstreamUsage, durationMs: number): Usage => ({
  ...noUsage,
  promptTokens: toCount(usage.promptTokens),
  cacheReadTokens: toCount(usage.cachedTokens),
  cacheWriteTokens: toCount(usage.cacheWriteTokens),
  completionTokens: toCount(usage.completionTokens),
  durationMs: Math.round(durationMs),
});

import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import type { Span } from '../../shared/platform/tracing/tracing.ts';
import type { CallClass } from '../../shared/work/queue/call-class.ts';
import type { UpstreamFailure, UpstreamUsage } from '../upstreams/upstream.ts';

/** How a vendor call ended. `cancelled`: nobody waited for it any more, or this process failed. */
export type CallEnd = 'success' | 'cancelled' | UpstreamFailure;

/** A vendor call that has ended. */
export interface EndedCall {
  /** The catalog's id of the model. */
  readonly model: string;
  readonly route: CatalogRoute;
  readonly callClass: CallClass;
  readonly end: CallEnd;
  /** The vendor's HTTP status if it sent one; 200 for a success. */
  readonly status: number | null;
  /** Why it failed, in the vendor's words without secrets; null for a success. */
  readonly reason: string | null;
  /** The vendor's own counts; null if it reported none. */
  readonly usage: UpstreamUsage | null;
  /** How long it waited for its slot. */
  readonly waitedMs: number;
  /** According to `performance.now` (ms). */
  readonly startedAtMs: number;
  readonly durationMs: number;
}

/** Gets the calls that are made for a request. */
export interface CallObserver {
  noteCall(call: EndedCall): void;
  /** Of the request's run; null if it is not traced. */
  readonly span?: Span | null;
}

/** A span in another process or of another request, in the form of W3C's Trace Context. */
export interface TraceContext {
  /** Valid, as `isTraceparent` checks it. */
  readonly traceparent: string;
  readonly tracestate?: string;
}

/** Values of `undefined` are left out. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanStart {
  readonly name: string;
  readonly kind: 'server' | 'consumer' | 'client';
  /** According to `performance.now` (ms); now by default. */
  readonly startedAtMs?: number;
  /** The span that it is a part of. Without one, a new trace begins. */
  readonly parent?: TraceContext | undefined;
  readonly links?: readonly TraceContext[];
  /** Those that a sampler may read. */
  readonly attributes: SpanAttributes;
}

/** A step of a request, for a trace. */
export interface Span extends TraceContext {
  readonly traceId: string;
  set(attributes: SpanAttributes): void;
  link(context: TraceContext): void;
  /** Marks it as failed. */
  fail(): void;
  /** Ends it now. Only the first call has an effect. */
  end(): void;
}

/** Creates the spans of a process and exports them. */
export interface Tracing {
  /** Whether a caller's `traceparent` is the parent of its request's span. */
  readonly trustsTraceparent: boolean;
  startSpan(start: SpanStart): Span;
  /** Exports what is left, for two seconds at most. Never rejects. */
  stop(): Promise<void>;
}

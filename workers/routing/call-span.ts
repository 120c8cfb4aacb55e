import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import type { GenAiOperation } from '../../shared/contract/gen-ai.ts';
import type { Span, SpanAttributes, Tracing } from '../../shared/platform/tracing/tracing.ts';
import type { UpstreamUsage } from '../upstreams/upstream.ts';
import type { CallEnd, CallObserver } from './call-observer.ts';
import { providerOf } from './gen-ai-provider.ts';

/** A merged call links to at most so many of the requests that it serves. */
const maxLinks = 32;

/** The vendor call that a span is about. */
export interface TracedCall {
  readonly operation: GenAiOperation;
  readonly route: CatalogRoute;
  /** Those that it is made for. */
  readonly observers: () => Iterable<CallObserver>;
  /** According to `performance.now` (ms). */
  readonly startedAtMs: number;
  /** How long it waited for its slot. */
  readonly waitedMs: number;
}

type CallUsage = Partial<
  Pick<
    UpstreamUsage,
    'promptTokens' | 'completionTokens' | 'cachedTokens' | 'cacheWriteTokens' | 'reasoningTokens'
  >
>;

/**
 * The span of one call to a vendor. It is created late, because a merged call chooses whom it serves once it has its slot.
 * It is a part of the first request's trace. If there are several requests, it links to them, and they link to it.
 */
export class CallSpan {
  readonly #tracing: Tracing;
  readonly #call: TracedCall;
  #span: Span | null = null;
  #attributes: SpanAttributes = {};

  constructor(tracing: Tracing, call: TracedCall) {
    this.#tracing = tracing;
    this.#call = call;
  }

  /** What the vendor gets; null unless its upstream has `traces: on`. Read it when it is known whom the call serves. */
  get sentTraceparent(): string | null {
    return this.#call.route.upstream.sendsTraceparent ? this.#start().traceparent : null;
  }

  /** Call this when the first part of a streamed response has arrived. */
  noteFirstChunk(): void {
    const seconds = (performance.now() - this.#call.startedAtMs) / 1_000;
    this.#attributes = { ...this.#attributes, 'gen_ai.response.time_to_first_chunk': seconds };
  }

  /** Takes the vendor's own counts. The last ones are used. */
  noteUsage(usage: CallUsage): void {
    this.#attributes = {
      ...this.#attributes,
      'gen_ai.usage.input_tokens': usage.promptTokens ?? undefined,
      'gen_ai.usage.output_tokens': usage.completionTokens ?? undefined,
      'gen_ai.usage.cache_read.input_tokens': usage.cachedTokens ?? undefined,
      'gen_ai.usage.cache_write.input_tokens': usage.cacheWriteTokens ?? undefined,
      'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens ?? undefined,
    };
  }

  /** @param status the vendor's HTTP status, if it is known */
  end(end: CallEnd, status: number | null): void {
    const span = this.#start();
    span.set({
      ...this.#attributes,
      'http.response.status_code': status ?? undefined,
      'error.type': end === 'success' ? undefined : end,
    });
    if (end !== 'success') span.fail();
    span.end();
  }

  #start(): Span {
    if (this.#span !== null) return this.#span;
    const { operation, route, startedAtMs, waitedMs, observers } = this.#call;
    const served: Span[] = [];
    let servedRequests = 0;
    for (const { span } of observers()) {
      if (span === undefined || span === null) continue;
      servedRequests += 1;
      if (served.length < maxLinks) served.push(span);
    }
    const isMerged = servedRequests > 1;
    const span = this.#tracing.startSpan({
      name: `${operation} ${route.model}`,
      kind: 'client',
      startedAtMs,
      parent: served[0],
      links: isMerged ? served : [],
      attributes: {
        'gen_ai.operation.name': operation,
        'gen_ai.provider.name': providerOf(route),
        'gen_ai.request.model': route.model,
        'gen_ai.output.type': operation === 'generate_content' ? 'image' : undefined,
        ...addressOf(route.upstream.baseUrl),
        'model_gateway.upstream': route.upstream.name,
        'model_gateway.slot_wait_seconds': waitedMs / 1_000,
        'model_gateway.requests': isMerged ? servedRequests : undefined,
      },
    });
    for (const other of served.slice(1)) other.link(span);
    this.#span = span;
    return span;
  }
}

/** @param baseUrl empty for a built-in model */
function addressOf(baseUrl: string): SpanAttributes {
  if (baseUrl === '') return {};
  const { hostname, port, protocol } = new URL(baseUrl);
  const defaultPort = protocol === 'https:' ? 443 : 80;
  return { 'server.address': hostname, 'server.port': port === '' ? defaultPort : Number(port) };
}

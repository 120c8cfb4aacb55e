// decision 0095
import {
  createTraceState,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Span as OtelSpan,
  type SpanContext,
  type Tracer,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  type ReadableSpan,
  type Sampler,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import type { TracingConfig } from '../config/tracing-config.ts';
import type { Logger } from '../runtime/logger.ts';
import { productVersion } from '../runtime/product-version.ts';
import { shorten } from '../runtime/shorten.ts';
import { createThrottledWarning } from '../runtime/throttled-warning.ts';
import { within } from '../runtime/within.ts';
import { readTraceparent, writeTraceparent } from './traceparent.ts';
import type { Span, SpanAttributes, SpanStart, TraceContext, Tracing } from './tracing.ts';

/** Of the semantic conventions that those for GenAI 0.1.0 extend. */
const schemaUrl = 'https://opentelemetry.io/schemas/1.45.0';

/** Time for the last spans when a process stops. */
const stopTimeoutMs = 2_000;

const kinds = { server: SpanKind.SERVER, consumer: SpanKind.CONSUMER, client: SpanKind.CLIENT };

/**
 * Traces with OpenTelemetry's SDK. It registers nothing globally and instruments nothing: spans are only those that our
 * code starts. Spans wait for their export in a bounded queue, and are dropped while it is full.
 */
export class OtelTracing implements Tracing {
  readonly trustsTraceparent: boolean;
  readonly #provider: BasicTracerProvider;
  readonly #tracer: Tracer;

  constructor(config: TracingConfig, role: 'api' | 'worker', log: Logger) {
    this.trustsTraceparent = config.trustsTraceparent;
    const exporter = new ReportingExporter(
      new OTLPTraceExporter({
        url: `${config.endpoint}/v1/traces`,
        headers: { ...config.headers },
        timeoutMillis: config.timeoutMs,
      }),
      createThrottledWarning((line, reason: string) => log.warn({ reason }, line)),
    );
    const processor = new BatchSpanProcessor(exporter, { scheduledDelayMillis: config.delayMs });
    this.#provider = new BasicTracerProvider({
      resource: defaultResource().merge(
        resourceFromAttributes({
          'service.name': `model-gateway-${role}`,
          'service.version': productVersion,
          ...config.resource,
          ...(config.serviceName !== null && { 'service.name': config.serviceName }),
        }),
      ),
      sampler: createSampler(config),
      spanProcessors: [processor],
    });
    this.#tracer = this.#provider.getTracer('model-gateway', productVersion, { schemaUrl });
  }

  startSpan({ name, kind, startedAtMs, parent, links = [], attributes }: SpanStart): Span {
    const options = {
      kind: kinds[kind],
      attributes,
      links: links.map((link) => ({ context: toSpanContext(link) })),
      ...(startedAtMs !== undefined && { startTime: startedAtMs }),
    };
    const context =
      parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, toSpanContext(parent));
    return new TracedSpan(this.#tracer.startSpan(name, options, context));
  }

  async stop(): Promise<void> {
    // The exporter has reported failures.
    const stopped = this.#provider.shutdown().catch(() => undefined);
    await within(stopTimeoutMs, stopped, () => undefined);
  }
}

class TracedSpan implements Span {
  readonly traceId: string;
  readonly traceparent: string;
  readonly #span: OtelSpan;
  #hasEnded = false;

  constructor(span: OtelSpan) {
    const context = span.spanContext();
    this.traceId = context.traceId;
    this.traceparent = writeTraceparent(context);
    this.#span = span;
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes(attributes);
  }

  link(context: TraceContext): void {
    this.#span.addLink({ context: toSpanContext(context) });
  }

  fail(): void {
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
  }

  end(): void {
    // The SDK would report a second call.
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#span.end();
  }
}

/** `ExportResultCode.SUCCESS` of a package that we do not import. */
const success = 0;

/** Reports failed exports. The spans of a failed export are lost. */
class ReportingExporter implements SpanExporter {
  readonly #exporter: OTLPTraceExporter;
  readonly #warn: (line: string, reason: string) => void;

  constructor(exporter: OTLPTraceExporter, warn: (line: string, reason: string) => void) {
    this.#exporter = exporter;
    this.#warn = warn;
  }

  export(spans: ReadableSpan[], onDone: Parameters<SpanExporter['export']>[1]): void {
    this.#exporter.export(spans, (result) => {
      const code: number = result.code;
      if (code !== success)
        this.#warn('exporting traces failed', shorten(result.error?.message ?? 'unknown'));
      onDone(result);
    });
  }

  forceFlush(): Promise<void> {
    return this.#exporter.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }
}

function createSampler({ sampler, samplerRatio }: TracingConfig): Sampler {
  const [name, isParentBased] = sampler.startsWith('parentbased_')
    ? [sampler.slice('parentbased_'.length), true]
    : [sampler, false];
  const root =
    name === 'always_on'
      ? new AlwaysOnSampler()
      : name === 'always_off'
        ? new AlwaysOffSampler()
        : new TraceIdRatioBasedSampler(samplerRatio);
  return isParentBased ? new ParentBasedSampler({ root }) : root;
}

function toSpanContext({ traceparent, tracestate }: TraceContext): SpanContext {
  return {
    ...readTraceparent(traceparent),
    isRemote: true,
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  };
}

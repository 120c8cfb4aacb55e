export const samplerNames = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;
export type SamplerName = (typeof samplerNames)[number];

/** Where traces are exported to, and which. The names and defaults of the variables are those of OpenTelemetry. */
export interface TracingConfig {
  /** Of a collector that speaks OTLP over HTTP. Without a trailing slash; the path `/v1/traces` is added. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** How long spans are collected before they are sent. */
  readonly delayMs: number;
  /** Null means that the name depends on the role of the process. */
  readonly serviceName: string | null;
  readonly resource: Readonly<Record<string, string>>;
  readonly sampler: SamplerName;
  /** From 0 to 1, for the samplers by ratio. */
  readonly samplerRatio: number;
  /** Whether a caller's `traceparent` is the parent of its request's span. If not, the span only links to it. */
  readonly trustsTraceparent: boolean;
}

/** The variables that `readTracingConfig` needs. */
export interface TracingVariables {
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string;
  readonly OTEL_EXPORTER_OTLP_HEADERS?: string;
  readonly OTEL_EXPORTER_OTLP_TIMEOUT: number;
  readonly OTEL_BSP_SCHEDULE_DELAY: number;
  readonly OTEL_SERVICE_NAME?: string;
  readonly OTEL_RESOURCE_ATTRIBUTES?: string;
  readonly OTEL_TRACES_SAMPLER: SamplerName;
  readonly OTEL_TRACES_SAMPLER_ARG: number;
  readonly OTEL_TRUST_TRACEPARENT: 'on' | 'off';
}

/** Returns null if nothing is exported. Entries of lists that are not valid are left out: see `readPairs`. */
export function readTracingConfig(values: TracingVariables): TracingConfig | null {
  const endpoint = values.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined) return null;
  return Object.freeze({
    endpoint: endpoint.endsWith('/') ? endpoint.slice(0, -1) : endpoint,
    headers: readPairs(values.OTEL_EXPORTER_OTLP_HEADERS ?? '').pairs,
    timeoutMs: values.OTEL_EXPORTER_OTLP_TIMEOUT,
    delayMs: values.OTEL_BSP_SCHEDULE_DELAY,
    serviceName: values.OTEL_SERVICE_NAME ?? null,
    resource: readPairs(values.OTEL_RESOURCE_ATTRIBUTES ?? '').pairs,
    sampler: values.OTEL_TRACES_SAMPLER,
    samplerRatio: values.OTEL_TRACES_SAMPLER_ARG,
    trustsTraceparent: values.OTEL_TRUST_TRACEPARENT === 'on',
  });
}

/**
 * Reads a list such as `api-key=secret,tenant=a%20b`, as OpenTelemetry's variables have it: values are percent-encoded.
 * @returns the pairs, and the positions (from 1) of the entries that are none; their text may be a secret
 */
export function readPairs(text: string): {
  readonly pairs: Readonly<Record<string, string>>;
  readonly wrong: readonly number[];
} {
  const pairs: Record<string, string> = {};
  const wrong: number[] = [];
  for (const [i, entry] of text.split(',').entries()) {
    if (entry.trim() === '') continue;
    const equals = entry.indexOf('=');
    const name = entry.slice(0, Math.max(0, equals)).trim();
    const value = decode(entry.slice(equals + 1).trim());
    if (/^[\w!#$%&'*+.^`|~/-]+$/.test(name) && value !== null) pairs[name] = value;
    else wrong.push(i + 1);
  }
  return { pairs, wrong };
}

/** Returns null for text that is not percent-encoded correctly, or has characters that a header cannot carry. */
function decode(text: string): string | null {
  try {
    const decoded = decodeURIComponent(text);
    return /^[\t\x20-\x7e\u0080-\uffff]*$/.test(decoded) ? decoded : null;
  } catch {
    // A URIError.
    return null;
  }
}

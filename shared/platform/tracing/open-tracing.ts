import type { TracingConfig } from '../config/tracing-config.ts';
import type { Logger } from '../runtime/logger.ts';
import type { Tracing } from './tracing.ts';

/** Starts to trace, if a collector is configured. Only then are OpenTelemetry's packages loaded. */
export async function openTracing(
  config: TracingConfig | null,
  role: 'api' | 'worker',
  log: Logger,
): Promise<Tracing | null> {
  if (config === null) return null;
  const { OtelTracing } = await import('./otel-tracing.ts');
  return new OtelTracing(config, role, log);
}

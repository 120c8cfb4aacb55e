import { AggregatorRegistry, type PrometheusContentType } from 'prom-client';
import type { MetricsJson } from '../../shared/platform/metrics/process-metrics.ts';

/**
 * Adds up the metrics of several processes, each as its `aggregator` says. A process shows NaN for what it does not know,
 * which is null in JSON, and would be written as infinity.
 */
function aggregate(processes: readonly MetricsJson[]) {
  return AggregatorRegistry.aggregate<PrometheusContentType>(processes.map(withoutUnknown));
}

const withoutUnknown = (metrics: MetricsJson): MetricsJson =>
  metrics.map((metric) => ({
    ...metric,
    values: metric.values.filter(({ value }) => Number.isFinite(value)),
  }));

/** The metrics of several processes together, in Prometheus's text format. */
export async function writeAggregated(processes: readonly MetricsJson[]): Promise<string> {
  return await aggregate(processes).metrics();
}

/** What several processes have counted together: their counters and histograms, which only grow. */
export async function sumCounters(processes: readonly MetricsJson[]): Promise<MetricsJson> {
  return await aggregate(processes.map(countersOf)).getMetricsAsJSON();
}

/** The metrics that only grow. They count even if the process is gone. */
export function countersOf(metrics: MetricsJson): MetricsJson {
  // In JSON that another process sent, the type is a word.
  return metrics.filter(({ type }) => ['counter', 'histogram'].includes(String(type)));
}

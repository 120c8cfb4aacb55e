import {
  collectDefaultMetrics,
  Counter,
  Gauge,
  Histogram,
  Registry,
  type CounterConfiguration,
  type GaugeConfiguration,
  type HistogramConfiguration,
  type Metric,
} from 'prom-client';

/** All names begin with this. */
export const metricPrefix = 'model_gateway_';

/** Upper bounds of buckets, in seconds. */
export const secondsBuckets = {
  /** From a request that is refused at once to an image that waits in a long queue. */
  requests: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640],
  /** Those of OpenTelemetry's conventions for generative AI, and longer ones for models that reason. */
  firstToken: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160],
  /** Those of OpenTelemetry's conventions. */
  perToken: [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5],
  /** Durable jobs and lines of batches may wait for hours. */
  waiting: [0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400],
  /** Round trips to a store. */
  stores: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5],
} as const;

/** All metrics of a process, with what says how they are aggregated. */
export type MetricsJson = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** A metric without its registry. Its name has no prefix, and ends with its unit. */
type Config<C> = Omit<C, 'registers' | 'labelNames'>;

/** How often the event loop is sampled. Each sample wakes up an idle process. */
const eventLoopSampleMs = 50;

let nodeMetrics: Registry | null = null;

/**
 * Those of Node itself. They watch the event loop and the garbage collector as long as the process lives, so there is one set
 * of them for all registries of the process.
 */
function listNodeMetrics(): Metric[] {
  if (nodeMetrics === null) {
    nodeMetrics = new Registry();
    collectDefaultMetrics({
      register: nodeMetrics,
      prefix: metricPrefix,
      eventLoopMonitoringPrecision: eventLoopSampleMs,
    });
  }
  return nodeMetrics.getMetricsAsArray() as unknown as Metric[];
}

/**
 * What a process counts about itself, in the format of Prometheus. Labels are bounded: they never contain an account, a key
 * or anything else that a caller invents.
 */
export class ProcessMetrics {
  readonly #registry = new Registry();

  /** @param labels of the build and the process, which `build_info` shows */
  constructor(labels: Readonly<Record<string, string>>) {
    for (const metric of listNodeMetrics()) this.#registry.registerMetric(metric);
    const info = this.gauge(
      { name: 'build_info', help: 'Always 1. Which build this process runs.', aggregator: 'first' },
      Object.keys(labels),
    );
    info.set(labels, 1);
  }

  counter<const L extends string>(config: Config<CounterConfiguration<L>>, labels: readonly L[]): Counter<L> {
    return new Counter({ ...this.#complete(config), labelNames: [...labels] });
  }

  /**
   * If `collect` is given, it sets the values of the gauge when they are read. Gauges of several processes are summed,
   * unless `aggregator` says otherwise: one that every process reads from the same store needs `first`.
   */
  gauge<const L extends string>(config: Config<GaugeConfiguration<L>>, labels: readonly L[]): Gauge<L> {
    return new Gauge({ ...this.#complete(config), labelNames: [...labels] });
  }

  histogram<const L extends string>(
    config: Config<HistogramConfiguration<L>>,
    labels: readonly L[],
  ): Histogram<L> {
    return new Histogram({ ...this.#complete(config), labelNames: [...labels] });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** All metrics, for `aggregateMetrics`. */
  async readJson(): Promise<MetricsJson> {
    return await this.#registry.getMetricsAsJSON();
  }

  /** All metrics in Prometheus's text format. */
  async write(): Promise<string> {
    return await this.#registry.metrics();
  }

  #complete<C extends { readonly name: string }>(config: C) {
    return { ...config, name: `${metricPrefix}${config.name}`, registers: [this.#registry] };
  }
}

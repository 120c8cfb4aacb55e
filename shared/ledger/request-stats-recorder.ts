import type { Running } from '../platform/runtime/lifecycle.ts';
import type { Logger } from '../platform/runtime/logger.ts';
import type { RequestStatsStore } from './request-stats-store.ts';
import { RequestSums, type SettledRequest } from './request-sums.ts';
import { SumsWriter } from './sums-writer.ts';
import { ModelTraffic } from './traffic-sums.ts';
import type { TrafficStore } from './traffic-store.ts';

const publicIntervalMs = 1_000;
/** A third of how long the overview is unchanged. What operators see is several times as much as the public sums. */
const defaultTrafficIntervalMs = 10_000;

export interface RequestStatsRecorderOptions {
  readonly stats: Pick<RequestStatsStore, 'record'>;
  readonly traffic: Pick<TrafficStore, 'record'>;
  readonly log: Logger;
  /** How often what operators see is written (ms). */
  readonly trafficIntervalMs?: number | undefined;
}

/** Records a process's settled requests for the public stats, once per second, and for those of operators. */
export class RequestStatsRecorder implements Running {
  readonly #stats: SumsWriter<RequestSums>;
  readonly #traffic: SumsWriter<ModelTraffic>;

  constructor(options: RequestStatsRecorderOptions) {
    const { stats, traffic, log, trafficIntervalMs = defaultTrafficIntervalMs } = options;
    this.#stats = new SumsWriter({
      create: () => new RequestSums(),
      store: stats,
      modelsPerRecord: 100,
      intervalMs: publicIntervalMs,
      log,
    });
    this.#traffic = new SumsWriter({
      create: () => new ModelTraffic(),
      store: traffic,
      modelsPerRecord: 20,
      intervalMs: trafficIntervalMs,
      log,
    });
  }

  note(request: SettledRequest): void {
    this.#stats.note(request);
    this.#traffic.note(request);
  }

  /** Writes what has been recorded so far, or waits for the writes that are running. Never rejects. */
  async flush(): Promise<void> {
    await Promise.all([this.#stats.flush(), this.#traffic.flush()]);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#stats.stop(), this.#traffic.stop()]);
  }
}

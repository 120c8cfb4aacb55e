import { isRedisUnavailable } from '../platform/redis/redis-client.ts';
import type { Running } from '../platform/runtime/lifecycle.ts';
import type { Logger } from '../platform/runtime/logger.ts';
import { runInBackground } from '../platform/runtime/run-in-background.ts';
import type { RequestStatsStore } from './request-stats-store.ts';
import { RequestSums, type SettledRequest } from './request-sums.ts';

const flushIntervalMs = 1_000;

/**
 * Records a process's settled requests for the public stats. Sums are kept in memory and written to Redis once per
 * second and at shutdown, so no request waits for it. These are stats, not money: a process that is killed loses the
 * last second of them, and a write whose reply was lost is counted twice. While Redis is unavailable, the sums in
 * memory grow only with the number of models. They are written when it is available again, as traffic of that time.
 */
export class RequestStatsRecorder implements Running {
  readonly #store: Pick<RequestStatsStore, 'record'>;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  #sums = new RequestSums();
  #flushing: Promise<void> | null = null;

  constructor(store: Pick<RequestStatsStore, 'record'>, log: Logger) {
    this.#store = store;
    this.#log = log;
    this.#timer = setInterval(
      () => runInBackground(this.flush(), 'writing request stats', log),
      flushIntervalMs,
    );
    this.#timer.unref();
  }

  note(request: SettledRequest): void {
    this.#sums.add(request);
  }

  /** Writes what has been recorded so far, or waits for the write that is running. Never rejects. */
  async flush(): Promise<void> {
    this.#flushing ??= this.#write().finally(() => {
      this.#flushing = null;
    });
    await this.#flushing;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    await this.flush();
  }

  async #write(): Promise<void> {
    if (this.#sums.isEmpty) return;
    const sums = this.#sums;
    this.#sums = new RequestSums();
    try {
      await this.#store.record(sums);
    } catch (error) {
      if (isRedisUnavailable(error)) {
        this.#sums.addAll(sums);
        this.#log.debug({ err: error }, 'request stats not written yet');
        return;
      }
      // Redis would reject these sums at every attempt, and all later ones with them.
      this.#log.error(
        { err: error, requests: sums.totals.requests },
        'request stats rejected by Redis and lost',
      );
    }
  }
}

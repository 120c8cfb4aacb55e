import { SingleFlight } from '../../../shared/platform/storage/single-flight.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import type { PublicStats } from '../../../shared/ledger/request-stats-store.ts';

/** How long outdated stats are shown after a failed refresh before the next attempt. */
const retryPauseMs = 2_000;

export interface StatsCacheOptions<T> {
  readonly read: () => Promise<PublicStats<T>>;
  readonly log: Logger;
  /** A monotonic clock in milliseconds; `performance.now` by default. */
  readonly nowMs?: () => number;
}

/**
 * Caches stats in the memory of one process and reads them again when they expire. Concurrent callers share one read.
 * If it fails, the last known stats are shown until the next attempt.
 */
export class StatsCache<T> {
  readonly #read: () => Promise<PublicStats<T>>;
  readonly #log: Logger;
  readonly #nowMs: () => number;
  #known: { readonly value: T; readonly untilMs: number } | null = null;
  readonly #reading = new SingleFlight<PublicStats<T>>('reading stats');
  #isStale = false;

  constructor({ read, log, nowMs = () => performance.now() }: StatsCacheOptions<T>) {
    this.#read = read;
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** @throws the error of the read if there are no stats yet */
  async get(): Promise<PublicStats<T>> {
    if (this.#known === null || this.#nowMs() >= this.#known.untilMs) {
      this.#known = await this.#refresh();
    }
    const { value, untilMs } = this.#known;
    return { value, validForMs: Math.max(0, untilMs - this.#nowMs()) };
  }

  async #refresh(): Promise<{ readonly value: T; readonly untilMs: number }> {
    try {
      const { value, validForMs } = await this.#reading.run('', this.#read);
      this.#isStale = false;
      return { value, untilMs: this.#nowMs() + validForMs };
    } catch (error) {
      if (this.#known === null) throw error;
      if (!this.#isStale) this.#log.warn({ err: error }, 'reading stats failed; showing the last known ones');
      this.#isStale = true;
      return { value: this.#known.value, untilMs: this.#nowMs() + retryPauseMs };
    }
  }
}

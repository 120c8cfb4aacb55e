import { SingleFlight } from '../runtime/single-flight.ts';
import type { Logger } from '../runtime/logger.ts';
import type { ShownFigures } from './traffic-store.ts';

/** How long figures that could not be refreshed are shown before another try. */
const retryPauseMs = 2_000;

export interface FiguresCacheOptions<T> {
  readonly read: () => Promise<ShownFigures<T>>;
  readonly log: Logger;
  /** Milliseconds that never go back; the process's own unless given. */
  readonly nowMs?: () => number;
}

/**
 * Figures in the memory of one process, read again once their time is over. Callers who come together share one
 * reading. Where it fails, the last known figures are shown a little longer.
 */
export class FiguresCache<T> {
  readonly #read: () => Promise<ShownFigures<T>>;
  readonly #log: Logger;
  readonly #nowMs: () => number;
  #known: { readonly value: T; readonly untilMs: number } | null = null;
  readonly #reading = new SingleFlight<ShownFigures<T>>('reading figures');
  #isStale = false;

  constructor({ read, log, nowMs = () => performance.now() }: FiguresCacheOptions<T>) {
    this.#read = read;
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** @throws what the reading threw, where nothing is known yet */
  async get(): Promise<ShownFigures<T>> {
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
      if (!this.#isStale)
        this.#log.warn({ err: error }, 'figures cannot be read; the last known ones are shown');
      this.#isStale = true;
      return { value: this.#known.value, untilMs: this.#nowMs() + retryPauseMs };
    }
  }
}

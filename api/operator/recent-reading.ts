import { SingleFlight } from '../../shared/platform/storage/single-flight.ts';

/** How long a reading applies by default, so that many scrapes cost no more than one. Workers report once a second. */
const defaultValidMs = 1_000;

/** Reads figures for several readers in one process. They are never shown once they are outdated. */
export class RecentReading<T> {
  readonly #read: () => Promise<T>;
  readonly #reading: SingleFlight<T>;
  readonly #validMs: number;
  #known: { readonly value: T; readonly untilMs: number } | null = null;

  /**
   * @param what is read, for logs
   * @param validMs how long a reading applies
   */
  constructor(what: string, read: () => Promise<T>, validMs = defaultValidMs) {
    this.#read = read;
    this.#validMs = validMs;
    this.#reading = new SingleFlight<T>(what);
  }

  /** @throws any error of the read */
  async get(): Promise<T> {
    if (this.#known !== null && performance.now() < this.#known.untilMs) return this.#known.value;
    const value = await this.#reading.run('', this.#read);
    this.#known = { value, untilMs: performance.now() + this.#validMs };
    return value;
  }

  /** Reads for metrics, which are absent while the figures are unknown. The client of the store logs its outage. */
  async use(show: (value: T) => void): Promise<void> {
    let value: T;
    try {
      value = await this.get();
    } catch {
      return;
    }
    show(value);
  }
}

import { waitForLookUp } from './wait-for-look-up.ts';

/** Far longer than any lookup takes. A driver command that never ends must not block a key or an account forever. */
export const maxSharedMs = 60_000;

/** Shares one lookup among callers that need the same result at the same time. */
export class SingleFlight<T> {
  readonly #what: string;
  readonly #maxMs: number;
  readonly #inFlight = new Map<string, Promise<T>>();

  /**
   * @param what name of the lookup in the log
   * @param maxMs how long one lookup is shared; later callers start another
   */
  constructor(what: string, maxMs = maxSharedMs) {
    this.#what = what;
    this.#maxMs = maxMs;
  }

  /** @throws AppError `service_unavailable` when the time runs out; any error that `start` throws */
  async run(key: string, start: () => Promise<T>): Promise<T> {
    let work = this.#inFlight.get(key);
    if (work === undefined) {
      work = waitForLookUp(this.#maxMs, this.#what, start()).finally(() => this.#inFlight.delete(key));
      this.#inFlight.set(key, work);
    }
    return await work;
  }

  /**
   * Like `run`, but only returns results of lookups that start after this call. Concurrent callers share the next one.
   */
  async runNext(key: string, start: () => Promise<T>): Promise<T> {
    await this.#inFlight.get(key)?.catch(() => undefined);
    return await this.run(key, start);
  }
}

import { waitForLookUp } from './within.ts';

/** Far above what a look-up takes. A driver's command that never ends must not keep a key, or an account, out for ever. */
export const maxSharedMs = 60_000;

/** Look-ups that callers who need the same thing at the same moment share. */
export class SingleFlight<T> {
  readonly #what: string;
  readonly #maxMs: number;
  readonly #underWay = new Map<string, Promise<T>>();

  /**
   * @param what is looked up, as the log tells of it
   * @param maxMs how long one look-up is shared; whoever comes later starts another
   */
  constructor(what: string, maxMs = maxSharedMs) {
    this.#what = what;
    this.#maxMs = maxMs;
  }

  /** @throws AppError `service_unavailable` when the time is over; what `start` throws */
  async run(key: string, start: () => Promise<T>): Promise<T> {
    let work = this.#underWay.get(key);
    if (work === undefined) {
      work = waitForLookUp(this.#maxMs, this.#what, start()).finally(() => this.#underWay.delete(key));
      this.#underWay.set(key, work);
    }
    return await work;
  }

  /** As `run`, but what it tells was not looked up before this was called: callers share the next one. */
  async runNext(key: string, start: () => Promise<T>): Promise<T> {
    await this.#underWay.get(key)?.catch(() => undefined);
    return await this.run(key, start);
  }
}

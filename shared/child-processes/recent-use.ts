/**
 * How much recent use decays per unit of elapsed time. At this rate, an account that uses 5 s per minute does
 * not accumulate any.
 */
const decayRate = 1 / 12;
/** Cap on the recent use of an account, so that it always decays within 12 minutes. */
const maxUseMs = 60_000;

interface Use {
  readonly ms: number;
  readonly atMs: number;
}

/** Tracks each account's recent use of processes, which decays over time. */
export class RecentUse {
  /** Least recently updated first. */
  readonly #uses = new Map<string, Use>();
  readonly #nowMs: () => number;

  /** @param nowMs a clock in milliseconds, for tests */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  get size(): number {
    return this.#uses.size;
  }

  /** @returns milliseconds */
  of(accountId: string): number {
    const use = this.#uses.get(accountId);
    return use === undefined ? 0 : Math.max(0, use.ms - (this.#nowMs() - use.atMs) * decayRate);
  }

  add(accountId: string, ms: number): void {
    const use = { ms: Math.min(maxUseMs, this.of(accountId) + ms), atMs: this.#nowMs() };
    this.#uses.delete(accountId);
    this.#uses.set(accountId, use);
    for (const oldest of this.#uses.keys()) {
      if (this.of(oldest) > 0) break;
      this.#uses.delete(oldest);
    }
  }
}

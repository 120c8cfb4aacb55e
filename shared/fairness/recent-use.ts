interface Use {
  readonly ms: number;
  readonly atMs: number;
}

export interface RecentUseOptions {
  /** How much recorded use decays per unit of elapsed time, from 0 to 1. */
  readonly decayRate: number;
  /** Cap on the recorded use of a holder, so that it always decays within a known time. */
  readonly maxUseMs: number;
  /** A clock in milliseconds, for tests. */
  readonly nowMs?: (() => number) | undefined;
}

/**
 * Tracks the time that each holder used recently. It decays over time: a holder that uses no more than the decay rate
 * accumulates nothing.
 */
export class RecentUse {
  /** Least recently updated first. */
  readonly #uses = new Map<string, Use>();
  readonly #decayRate: number;
  readonly #maxUseMs: number;
  readonly #nowMs: () => number;

  constructor({ decayRate, maxUseMs, nowMs = () => performance.now() }: RecentUseOptions) {
    this.#decayRate = decayRate;
    this.#maxUseMs = maxUseMs;
    this.#nowMs = nowMs;
  }

  get size(): number {
    return this.#uses.size;
  }

  /** @returns milliseconds */
  of(holder: string): number {
    const use = this.#uses.get(holder);
    return use === undefined ? 0 : Math.max(0, use.ms - (this.#nowMs() - use.atMs) * this.#decayRate);
  }

  add(holder: string, ms: number): void {
    const use = { ms: Math.min(this.#maxUseMs, this.of(holder) + ms), atMs: this.#nowMs() };
    this.#uses.delete(holder);
    this.#uses.set(holder, use);
    for (const oldest of this.#uses.keys()) {
      if (this.of(oldest) > 0) break;
      this.#uses.delete(oldest);
    }
  }
}

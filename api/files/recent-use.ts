/** Of each second: an account may use 5 s a minute for ever and be as good as new. */
const forgottenShare = 1 / 12;
/** However much an account has used, it is forgotten within 12 minutes. */
const maxUseMs = 60_000;

interface Use {
  readonly ms: number;
  readonly atMs: number;
}

/** How much time of reading each account used lately: what it used is forgotten little by little. */
export class RecentUse {
  /** The one that was added to least recently comes first. */
  readonly #uses = new Map<string, Use>();
  readonly #nowMs: () => number;

  /** @param nowMs a clock in milliseconds, for tests */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Accounts that are remembered. */
  get size(): number {
    return this.#uses.size;
  }

  /** @returns milliseconds */
  of(accountId: string): number {
    const use = this.#uses.get(accountId);
    return use === undefined ? 0 : Math.max(0, use.ms - (this.#nowMs() - use.atMs) * forgottenShare);
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

/** An account whose input was refused is likely to send another such. */
const suspectMs = 60_000;

/** Accounts of which a vendor refused an input lately. */
export class Suspects {
  /** By when they are trusted again, in that order. */
  readonly #untilMs = new Map<string, number>();
  readonly #nowMs: () => number;

  constructor(nowMs = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  add(accountId: string): void {
    const nowMs = this.#nowMs();
    for (const [id, untilMs] of this.#untilMs) {
      if (untilMs > nowMs) break;
      this.#untilMs.delete(id);
    }
    this.#untilMs.delete(accountId);
    this.#untilMs.set(accountId, nowMs + suspectMs);
  }

  has(accountId: string): boolean {
    return (this.#untilMs.get(accountId) ?? 0) > this.#nowMs();
  }
}

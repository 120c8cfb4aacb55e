/** The amount of a shared capacity that each holder (an account or a client network) holds. The capacity may change. */
export class Holdings {
  readonly #heldBy = new Map<string, number>();
  #sum = 0;

  get sum(): number {
    return this.#sum;
  }

  of(holder: string): number {
    return this.#heldBy.get(holder) ?? 0;
  }

  change(holder: string, by: number): void {
    this.#sum += by;
    const held = this.of(holder) + by;
    if (held > 0) this.#heldBy.set(holder, held);
    else this.#heldBy.delete(holder);
  }

  /**
   * Whether a holder with this additional amount has at most half of the capacity not held by others. Its first share
   * is always allowed, whatever its size.
   * @param before the amount that the same request already holds and that the new amount replaces
   */
  isWithinShare(capacity: number, holder: string, before: number, amount: number): boolean {
    const held = this.of(holder) - before;
    const free = capacity - this.#sum + before;
    return held === 0 || held + amount <= (free + held) / 2;
  }
}

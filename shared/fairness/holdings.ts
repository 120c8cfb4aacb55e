/** How much each holder (an account or a client network) holds of a shared capacity. The capacity may change. */
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
    const own = this.of(holder) + by;
    if (own > 0) this.#heldBy.set(holder, own);
    else this.#heldBy.delete(holder);
  }

  /**
   * Whether a holder with this amount has at most half of what the others leave it. Its first share is always allowed,
   * whatever its size.
   * @param before what the same request already holds and gives up for the new amount
   */
  isWithinShare(capacity: number, holder: string, before: number, amount: number): boolean {
    const own = this.of(holder) - before;
    const left = capacity - this.#sum + before;
    return own === 0 || own + amount <= (left + own) / 2;
  }
}

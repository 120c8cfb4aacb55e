/** Who (an account, or a network of callers) holds how much of something that is shared. How much there is of it may change. */
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
   * Whether a holder that has this much has no more than half of what the others leave it; its first share is within
   * that, whatever it is.
   * @param before what the same request holds already, and gives up for the new amount
   */
  isWithinShare(capacity: number, holder: string, before: number, amount: number): boolean {
    const own = this.of(holder) - before;
    const left = capacity - this.#sum + before;
    return own === 0 || own + amount <= (left + own) / 2;
  }
}

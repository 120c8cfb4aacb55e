/** Who holds how much of something that accounts share. How much there is of it may change. */
export class Holdings {
  readonly #heldBy = new Map<string, number>();
  #sum = 0;

  get sum(): number {
    return this.#sum;
  }

  of(accountId: string): number {
    return this.#heldBy.get(accountId) ?? 0;
  }

  change(accountId: string, by: number): void {
    this.#sum += by;
    const own = this.of(accountId) + by;
    if (own > 0) this.#heldBy.set(accountId, own);
    else this.#heldBy.delete(accountId);
  }

  /**
   * Whether an account that has this much has no more than half of what the others leave it; its first share is within
   * that, whatever it is.
   * @param before what the same request holds already, and gives up for the new amount
   */
  isWithinShare(capacity: number, accountId: string, before: number, amount: number): boolean {
    const own = this.of(accountId) - before;
    const left = capacity - this.#sum + before;
    return own === 0 || own + amount <= (left + own) / 2;
  }
}

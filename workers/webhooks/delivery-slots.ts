/** Concurrent attempts per process and account. */
const maxPerAccount = 2;

/**
 * Limits concurrent attempts per account, so that a receiver that does not respond delays only the deliveries of its
 * own account.
 */
export class DeliverySlots {
  readonly #active = new Map<string, number>();

  isFree(accountId: string): boolean {
    return (this.#active.get(accountId) ?? 0) < maxPerAccount;
  }

  /** @returns a function to call exactly once when the attempt has ended; null if the account is at its limit */
  tryBegin(accountId: string): (() => void) | null {
    if (!this.isFree(accountId)) return null;
    this.#active.set(accountId, (this.#active.get(accountId) ?? 0) + 1);
    return () => {
      const remaining = this.#active.get(accountId)! - 1;
      if (remaining === 0) this.#active.delete(accountId);
      else this.#active.set(accountId, remaining);
    };
  }
}

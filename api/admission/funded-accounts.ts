import { LRUCache } from 'lru-cache';
import type { HotAccountStore } from '../../shared/billing/hot-account-store.ts';
import { AppError } from '../../shared/contract/errors.ts';

const maxAccounts = 50_000;
/** How long an account is believed to have money after it was last seen to have some. */
const fundedTtlMs = 60_000;
/** Short, so that an account that has refilled its balance is soon treated as one that has money. */
const unfundedTtlMs = 5_000;

/** Remembers which accounts have money or free requests, as seen by this process. */
export class FundedAccounts {
  readonly #hotAccounts: Pick<HotAccountStore, 'get'>;
  readonly #known = new LRUCache<string, boolean>({ max: maxAccounts, ttl: fundedTtlMs });

  constructor(hotAccounts: Pick<HotAccountStore, 'get'>) {
    this.#hotAccounts = hotAccounts;
  }

  /** Whether the account is known to have money. */
  has(accountId: string): boolean {
    return this.#known.get(accountId) === true;
  }

  note(accountId: string, isFunded: boolean): void {
    this.#known.set(accountId, isFunded, { ttl: isFunded ? fundedTtlMs : unfundedTtlMs });
  }

  /** Like `has`, but reads the account from Redis if nothing is known about it. */
  async find(accountId: string): Promise<boolean> {
    const known = this.#known.get(accountId);
    if (known !== undefined) return known;
    const isFunded = await this.#read(accountId);
    this.note(accountId, isFunded);
    return isFunded;
  }

  async #read(accountId: string): Promise<boolean> {
    try {
      const { balanceNano, freeRequests, banned } = await this.#hotAccounts.get(accountId);
      return !banned && (balanceNano > 0n || freeRequests > 0);
    } catch (error) {
      // The account no longer exists, or a store is unavailable. The call itself reports that.
      if (error instanceof AppError) return false;
      throw error;
    }
  }
}

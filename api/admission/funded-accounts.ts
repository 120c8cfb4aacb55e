import { createRecentEntries } from '../../shared/platform/runtime/recent-entries.ts';
import type { KeyHolder } from '../../shared/accounts/api-key-store.ts';
import type { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { SingleFlight } from '../../shared/platform/storage/single-flight.ts';

const maxKeys = 50_000;
/** How long an account is believed to have money after it was last seen to have some. */
const fundedTtlMs = 60_000;
/** Short, so that an account that has refilled its balance is soon treated as one that has money. */
const unfundedTtlMs = 5_000;

/** Remembers the keys whose accounts have money or free requests, as seen by this process. */
export class FundedAccounts {
  readonly #hotAccounts: Pick<HotAccountStore, 'get'>;
  readonly #known = createRecentEntries<string, boolean>(maxKeys, fundedTtlMs);
  readonly #reading = new SingleFlight<boolean>('account balance');

  constructor(hotAccounts: Pick<HotAccountStore, 'get'>) {
    this.#hotAccounts = hotAccounts;
  }

  /** Whether the account of the key is known to have money. */
  has(keyHash: string): boolean {
    return this.#known.get(keyHash) === true;
  }

  note(keyHash: string): void {
    this.#known.set(keyHash, true);
  }

  forget(keyHash: string): void {
    this.#known.delete(keyHash);
  }

  /** Like `has`, but reads the account if nothing is known about it. Concurrent calls share one look-up. */
  async find(holder: KeyHolder): Promise<boolean> {
    const { keyHash } = holder;
    const known = this.#known.get(keyHash);
    if (known !== undefined) return known;
    return await this.#reading.run(keyHash, () => this.#read(holder));
  }

  async #read({ accountId, keyHash }: KeyHolder): Promise<boolean> {
    const isFunded = await this.#isFunded(accountId, keyHash);
    this.#known.set(keyHash, isFunded, { ttl: isFunded ? fundedTtlMs : unfundedTtlMs });
    return isFunded;
  }

  async #isFunded(accountId: string, usedKeyHash: string): Promise<boolean> {
    try {
      const { keyHash, balanceNano, freeRequests, banned } = await this.#hotAccounts.get(accountId);
      return keyHash === usedKeyHash && !banned && (balanceNano > 0n || freeRequests > 0);
    } catch (error) {
      // The account no longer exists, or a store is unavailable. The call itself reports that.
      if (error instanceof AppError) return false;
      throw error;
    }
  }
}

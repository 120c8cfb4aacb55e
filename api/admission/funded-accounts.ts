import { createRecentEntries } from '../../shared/platform/runtime/recent-entries.ts';
import type { AccountHolder } from '../http/request/holder.ts';
import type { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { SingleFlight } from '../../shared/platform/storage/single-flight.ts';

const maxKeys = 50_000;
/** How long an account is believed to have money after it was last seen to have some. */
const fundedTtlMs = 60_000;
/** Short, so that an account that has refilled its balance is soon treated as one that has money. */
const unfundedTtlMs = 5_000;

/**
 * Remembers which callers' accounts have money or free requests, as seen by this process: by key, because a replaced one no
 * longer pays, and by account for sessions.
 */
export class FundedAccounts {
  readonly #hotAccounts: Pick<HotAccountStore, 'get'>;
  readonly #known = createRecentEntries<string, boolean>(maxKeys, fundedTtlMs);
  readonly #reading = new SingleFlight<boolean>('account balance');

  constructor(hotAccounts: Pick<HotAccountStore, 'get'>) {
    this.#hotAccounts = hotAccounts;
  }

  /** Whether the caller's account is known to have money. */
  has(holder: AccountHolder): boolean {
    return this.#known.get(nameOf(holder)) === true;
  }

  note(holder: AccountHolder): void {
    this.#known.set(nameOf(holder), true);
  }

  forget(holder: AccountHolder): void {
    this.#known.delete(nameOf(holder));
  }

  /** Like `has`, but reads the account if nothing is known about it. Concurrent calls share one look-up. */
  async find(holder: AccountHolder): Promise<boolean> {
    const name = nameOf(holder);
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    return await this.#reading.run(name, () => this.#read(holder));
  }

  async #read(holder: AccountHolder): Promise<boolean> {
    const isFunded = await this.#isFunded(holder);
    this.#known.set(nameOf(holder), isFunded, { ttl: isFunded ? fundedTtlMs : unfundedTtlMs });
    return isFunded;
  }

  async #isFunded({ accountId, keyHash }: AccountHolder): Promise<boolean> {
    try {
      const account = await this.#hotAccounts.get(accountId);
      const { balanceNano, freeRequests, banned } = account;
      return (
        (keyHash === null || keyHash === account.keyHash) && !banned && (balanceNano > 0n || freeRequests > 0)
      );
    } catch (error) {
      // The account no longer exists, or a store is unavailable. The call itself reports that.
      if (error instanceof AppError) return false;
      throw error;
    }
  }
}

const nameOf = ({ accountId, keyHash }: AccountHolder): string => keyHash ?? accountId;

// decision 0096
import { isInRanges } from '../../shared/accounts/address-ranges.ts';
import type { HotAccountStore, KeyAccess } from '../../shared/accounts/hot-account-store.ts';
import { createRecentEntries } from '../../shared/platform/runtime/recent-entries.ts';
import { SingleFlight } from '../../shared/platform/storage/single-flight.ts';
import { waitForLookUp } from '../../shared/platform/storage/wait-for-look-up.ts';
import { addressDigits } from '../http/callers/address-digits.ts';
import { addressNotAllowed, keyExpired } from './restriction-errors.ts';

const maxAccounts = 50_000;
/** A change is announced to all processes. If the announcement is lost, it holds after this time. */
const ttlMs = 1_000;

/** When and from where keys may be used, for operations without admission. */
export class KeyAccessCache {
  readonly #hotAccounts: Pick<HotAccountStore, 'readAccess'>;
  readonly #waitMs: number;
  readonly #known = createRecentEntries<string, KeyAccess>(maxAccounts, ttlMs);
  readonly #reading = new SingleFlight<KeyAccess>('access of an account');

  constructor(hotAccounts: Pick<HotAccountStore, 'readAccess'>, waitMs: number) {
    this.#hotAccounts = hotAccounts;
    this.#waitMs = waitMs;
  }

  /**
   * Checks that the account's key may be used now, from this address.
   * @throws AppError `key_expired`, `address_not_allowed`; `invalid_api_key` if the account does not exist;
   * `service_unavailable` if it cannot be loaded in time
   */
  async check(accountId: string, address: string): Promise<void> {
    const { expiresAtMs, addresses } = this.#known.get(accountId) ?? (await this.#read(accountId));
    if (expiresAtMs !== null && expiresAtMs <= Date.now()) throw keyExpired(new Date(expiresAtMs));
    if (addresses !== null && !isInRanges(addresses, addressDigits(address)))
      throw addressNotAllowed(address);
  }

  /** Drops what is known of an account, or of all if changes may have been missed. */
  drop(accountId: string | null): void {
    if (accountId === null) this.#known.clear();
    else this.#known.delete(accountId);
  }

  async #read(accountId: string): Promise<KeyAccess> {
    const reading = this.#reading.run(accountId, async () => {
      const access = await this.#hotAccounts.readAccess(accountId);
      this.#known.set(accountId, access);
      return access;
    });
    return await waitForLookUp(this.#waitMs, 'loading an account', reading);
  }
}

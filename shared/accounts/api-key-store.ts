// decision 0043
import { createRecentEntries } from '../platform/runtime/recent-entries.ts';
import { AppError } from '../contract/errors.ts';
import { FairBudget } from '../fairness/fair-budget.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { maxSharedMs, SingleFlight } from '../platform/storage/single-flight.ts';
import { waitForLookUp } from '../platform/storage/wait-for-look-up.ts';
import type { AccountStore } from './account-store.ts';
import { hashSecret, isApiKey } from './credentials.ts';

export interface KeyHolder {
  readonly accountId: string;
  readonly keyHash: string;
}

const cachedKeys = 50_000;
/**
 * How long unknown keys are cached, to limit lookups in a flood of requests with one wrong key. Safe, because a new key
 * is random and never equals one that was tried before.
 */
const unknownKeyMs = 5_000;
const knownKeySeconds = 24 * 60 * 60;

/** How long a caller waits for the lookup of its key. */
const defaultWaitMs = 2_000;
/** Half of the connections to MongoDB. */
const maxLookUps = 10;

const lookUpName = 'API key lookup';

export interface ApiKeyOptions {
  readonly waitMs?: number | undefined;
  /** How long a lookup may take and hold its slot. */
  readonly maxLookUpMs?: number;
}

/**
 * Finds the account of a key: in the process's cache, then in Redis, then in MongoDB, so that known keys work while
 * MongoDB is unavailable. Neither cache can make a replaced key work: admission checks its hash against the account's
 * own key hash.
 */
export class ApiKeyStore {
  readonly #redis: RedisClient;
  readonly #accounts: AccountStore;
  readonly #known = createRecentEntries<string, KeyHolder>(cachedKeys);
  readonly #unknown = createRecentEntries<string, true>(cachedKeys, unknownKeyMs);
  readonly #waitMs: number;
  readonly #maxLookUpMs: number;
  readonly #inFlight: SingleFlight<KeyHolder | null>;
  /**
   * Slots of concurrent MongoDB lookups, shared fairly between networks: a caller that tries made-up keys cannot hold
   * all of them.
   */
  readonly #mongoSlots = new FairBudget({ capacity: maxLookUps });

  constructor(
    redis: RedisClient,
    accounts: AccountStore,
    { waitMs = defaultWaitMs, maxLookUpMs = maxSharedMs }: ApiKeyOptions = {},
  ) {
    this.#redis = redis;
    this.#accounts = accounts;
    this.#waitMs = waitMs;
    this.#maxLookUpMs = maxLookUpMs;
    this.#inFlight = new SingleFlight(lookUpName, maxLookUpMs);
  }

  /**
   * Returns null if no account has this key. Concurrent calls with the same key share one lookup.
   * @param getNetwork returns the caller's network; called only if the key must be looked up
   * @throws AppError `service_unavailable` if there is no result in time
   */
  async find(apiKey: string, getNetwork: () => string): Promise<KeyHolder | null> {
    if (!isApiKey(apiKey)) return null;
    const keyHash = hashSecret(apiKey);
    const cached = this.#known.get(keyHash);
    if (cached !== undefined) return cached;
    if (this.#unknown.has(keyHash)) return null;

    const lookingUp = this.#inFlight.run(keyHash, () => this.#lookUp(keyHash, getNetwork()));
    return await waitForLookUp(this.#waitMs, lookUpName, lookingUp);
  }

  async #lookUp(keyHash: string, network: string): Promise<KeyHolder | null> {
    const cachedId = await callRedis(() => this.#redis.get(redisKeys.apiKey(keyHash)));
    const accountId = cachedId ?? (await this.#queryMongo(keyHash, network));
    if (accountId === null) {
      this.#unknown.set(keyHash, true);
      return null;
    }
    if (cachedId === null) {
      await callRedis(() => this.#redis.set(redisKeys.apiKey(keyHash), accountId, 'EX', knownKeySeconds));
    }
    const holder = { accountId, keyHash };
    this.#known.set(keyHash, holder);
    return holder;
  }

  async #queryMongo(keyHash: string, network: string): Promise<string | null> {
    const createError = (): AppError =>
      new AppError('service_unavailable', { message: 'too many API key lookups are waiting for MongoDB' });
    // The slot is held until MongoDB responds, even if no caller is still waiting.
    const slot = await this.#mongoSlots.acquire(network, 1, { waitMs: this.#waitMs, createError });
    try {
      const query = this.#accounts.findIdByKeyHash(keyHash);
      return await waitForLookUp(this.#maxLookUpMs, lookUpName, query);
    } finally {
      slot.release();
    }
  }

  /** Removes a replaced key from this process and from Redis. */
  async forget(keyHash: string): Promise<void> {
    this.#known.delete(keyHash);
    await callRedis(() => this.#redis.del(redisKeys.apiKey(keyHash)));
  }

  /** Drops an account's keys from this process, or all keys if changes may have been missed. */
  drop(accountId: string | null): void {
    if (accountId === null) {
      this.#known.clear();
      this.#unknown.clear();
      return;
    }
    for (const [keyHash, holder] of this.#known.entries()) {
      if (holder.accountId === accountId) this.#known.delete(keyHash);
    }
  }
}

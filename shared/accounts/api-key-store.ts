import { LRUCache } from 'lru-cache';
import { AppError } from '../contract/errors.ts';
import { FairBudget } from '../fairness/fair-budget.ts';
import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { maxSharedMs, SingleFlight } from '../runtime/single-flight.ts';
import { waitForLookUp } from '../runtime/within.ts';
import type { AccountStore } from './account-store.ts';
import { hashSecret, isApiKey } from './credentials.ts';

export interface KeyHolder {
  readonly accountId: string;
  readonly keyHash: string;
}

const cachedKeys = 50_000;
/** Long enough to blunt a flood of one wrong key; a key made meanwhile is another key. */
const unknownKeyMs = 5_000;
const knownKeySeconds = 24 * 60 * 60;

/** How long a caller waits to be told whose key it has. */
const defaultWaitMs = 2_000;
/** Half of the connections to MongoDB. */
const maxLookUps = 10;

const whatIsLookedUp = 'the look-up of an API key';

export interface ApiKeyOptions {
  readonly waitMs?: number | undefined;
  /** How long one look-up is waited for by whoever comes, and holds its share of those under way. */
  readonly maxLookUpMs?: number;
}

/**
 * Whose key it is: from the process's cache, else Redis, else MongoDB, so that known keys work while MongoDB is away.
 * Neither cache can open a replaced key: what it names is checked against the account's own key hash at admission.
 */
export class ApiKeyStore {
  readonly #redis: RedisClient;
  readonly #accounts: AccountStore;
  readonly #known = new LRUCache<string, KeyHolder>({ max: cachedKeys });
  readonly #unknown = new LRUCache<string, true>({ max: cachedKeys, ttl: unknownKeyMs });
  readonly #waitMs: number;
  readonly #maxLookUpMs: number;
  readonly #lookingUp: SingleFlight<KeyHolder | null>;
  /** Questions to MongoDB under way, by where their callers come from: whoever invents keys leaves some to others. */
  readonly #lookUps = new FairBudget({ capacity: maxLookUps });

  constructor(
    redis: RedisClient,
    accounts: AccountStore,
    { waitMs = defaultWaitMs, maxLookUpMs = maxSharedMs }: ApiKeyOptions = {},
  ) {
    this.#redis = redis;
    this.#accounts = accounts;
    this.#waitMs = waitMs;
    this.#maxLookUpMs = maxLookUpMs;
    this.#lookingUp = new SingleFlight(whatIsLookedUp, maxLookUpMs);
  }

  /**
   * Null for a key that no account has. Callers who present the same key at the same moment share one look-up.
   * @param nameNetwork names where the caller comes from; called where the key must be looked up
   * @throws AppError `service_unavailable` where nobody can say in time
   */
  async find(apiKey: string, nameNetwork: () => string): Promise<KeyHolder | null> {
    if (!isApiKey(apiKey)) return null;
    const keyHash = hashSecret(apiKey);
    const cached = this.#known.get(keyHash);
    if (cached !== undefined) return cached;
    if (this.#unknown.has(keyHash)) return null;

    const lookingUp = this.#lookingUp.run(keyHash, () => this.#lookUp(keyHash, nameNetwork()));
    return await waitForLookUp(this.#waitMs, whatIsLookedUp, lookingUp);
  }

  async #lookUp(keyHash: string, network: string): Promise<KeyHolder | null> {
    const remembered = await callRedis(() => this.#redis.get(redisKeys.apiKey(keyHash)));
    const accountId = remembered ?? (await this.#askMongo(keyHash, network));
    if (accountId === null) {
      this.#unknown.set(keyHash, true);
      return null;
    }
    if (remembered === null) {
      await callRedis(() => this.#redis.set(redisKeys.apiKey(keyHash), accountId, 'EX', knownKeySeconds));
    }
    const holder = { accountId, keyHash };
    this.#known.set(keyHash, holder);
    return holder;
  }

  async #askMongo(keyHash: string, network: string): Promise<string | null> {
    const refuse = (): AppError =>
      new AppError('service_unavailable', { message: 'too many look-ups of keys wait for MongoDB' });
    // Held until MongoDB has answered, also where nobody waits for that any more.
    const share = await this.#lookUps.acquire(network, 1, { waitMs: this.#waitMs, refuse });
    try {
      const asking = this.#accounts.findIdByKeyHash(keyHash);
      return await waitForLookUp(this.#maxLookUpMs, whatIsLookedUp, asking);
    } finally {
      share.release();
    }
  }

  /** Forgets a key that turned out to be replaced, here and in Redis. */
  async forget(keyHash: string): Promise<void> {
    this.#known.delete(keyHash);
    await callRedis(() => this.#redis.del(redisKeys.apiKey(keyHash)));
  }

  /** Drops an account's keys from this process, or all of them where changes may have been missed. */
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

import { LRUCache } from 'lru-cache';
import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
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

/**
 * Whose key it is: from the process's cache, else Redis, else MongoDB, so that known keys work while MongoDB is away.
 * Neither cache can open a replaced key: what it names is checked against the account's own key hash at admission.
 */
export class ApiKeyStore {
  readonly #redis: RedisClient;
  readonly #accounts: AccountStore;
  readonly #known = new LRUCache<string, KeyHolder>({ max: cachedKeys });
  readonly #unknown = new LRUCache<string, true>({ max: cachedKeys, ttl: unknownKeyMs });

  constructor(redis: RedisClient, accounts: AccountStore) {
    this.#redis = redis;
    this.#accounts = accounts;
  }

  /** Null for a key that no account has. */
  async find(apiKey: string): Promise<KeyHolder | null> {
    if (!isApiKey(apiKey)) return null;
    const keyHash = hashSecret(apiKey);
    const cached = this.#known.get(keyHash);
    if (cached !== undefined) return cached;
    if (this.#unknown.has(keyHash)) return null;

    const remembered = await callRedis(() => this.#redis.get(redisKeys.apiKey(keyHash)));
    const accountId = remembered ?? (await this.#accounts.findIdByKeyHash(keyHash));
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

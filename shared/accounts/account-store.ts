import { randomUUID } from 'node:crypto';
import type { StreamId } from '../ledger/usage-event.ts';
import type { Config } from '../platform/config/config.ts';
import {
  callMongo,
  isDuplicateKey,
  type Collection,
  type Database,
} from '../platform/storage/mongo-client.ts';
import { linearizableRead } from '../platform/storage/mongo-durability.ts';
import { isAfter, newestFirst } from '../platform/storage/newest-first.ts';
import { AccountSearchStore, type WordPlace } from './account-search-store.ts';
import { createApiKey, hashSecret, maskApiKey } from './credentials.ts';
import { KeySecretStore } from './key-secret-store.ts';
import { listSearchWords, type SearchedFields } from './search-words.ts';

/** An account in MongoDB. Its sums cover the ledger entries up to `applied*`. */
export interface AccountDocument {
  readonly _id: string;
  readonly keyHash: string;
  readonly keyMasked: string;
  readonly userType: string;
  readonly requestsPerMinute: number;
  /** Absent if never set; `readJobSettings` fills in the default. */
  readonly maxQueuedJobs?: number;
  readonly weight?: number;
  readonly banned: boolean;
  readonly banReason: string | null;
  readonly createdAt: Date;
  readonly balanceNano: bigint;
  readonly totalAddedNano: bigint;
  readonly freeRequests: number;
  /** What operators know it by. Absent if never set. */
  readonly name?: string | null;
  readonly email?: string | null;
  readonly note?: string | null;
  /** How many rows the account has in the request log and in the refill log. Each number is also the ordinal of the latest one. */
  readonly charges: number;
  readonly codes: number;
  readonly appliedMs: number;
  readonly appliedSeq: number;
}

export interface NewAccount extends SearchedFields {
  readonly userType: string;
  readonly requestsPerMinute: number;
}

/** The fields of an account that operators can change. */
export type AccountChange = Partial<
  Pick<
    AccountDocument,
    'requestsPerMinute' | 'maxQueuedJobs' | 'weight' | 'banned' | 'banReason' | 'name' | 'email' | 'note'
  >
>;

/** The key fields of an account: the hash for lookups and the mask for display. */
type DescribedKey = Pick<AccountDocument, 'keyHash' | 'keyMasked'>;

function describeKey(apiKey: string): DescribedKey {
  return { keyHash: hashSecret(apiKey), keyMasked: maskApiKey(apiKey) };
}

export interface ReplacedKey {
  /** The new key in plain text, which is stored nowhere. */
  readonly apiKey: string;
  readonly keyHash: string;
  readonly old: DescribedKey;
}

/** The key that the account must still have; any key if absent. */
export interface ExpectedKey {
  readonly expectedKeyHash?: string;
}

const toFilter = (id: string, { expectedKeyHash }: ExpectedKey) =>
  expectedKeyHash === undefined ? { _id: id } : { _id: id, keyHash: expectedKeyHash };

/** Accounts in MongoDB. Balances are never set here; only ledger entries change them. */
export class AccountStore {
  readonly #accounts: Collection<AccountDocument>;
  readonly #secrets: KeySecretStore;
  readonly #search: AccountSearchStore;

  constructor(db: Database, config: Pick<Config, 'masterKey' | 'revealsKeys'>) {
    this.#accounts = db.collection('accounts');
    this.#search = new AccountSearchStore(db);
    this.#secrets = new KeySecretStore(db, config);
  }

  async createIndexes(): Promise<void> {
    await this.#accounts.createIndex({ keyHash: 1 }, { unique: true });
    await this.#accounts.createIndex({ createdAt: 1, _id: 1 });
    await this.#search.createIndexes();
  }

  /**
   * Brings the stored secrets of keys in line with REVEAL. Safe to repeat. @returns whether MASTER_KEY decrypts them
   */
  async prepareSecrets(): Promise<boolean> {
    return await this.#secrets.prepare();
  }

  /** Creates an account with a balance of zero. Its key is returned only here. */
  async create(account: NewAccount): Promise<{ id: string; apiKey: string }> {
    const id = randomUUID();
    return { id, apiKey: await this.#insert(id, account) };
  }

  /**
   * Creates an account with this id. @returns its key, which is returned only here; null if the account already exists
   */
  async createWithId(id: string, account: NewAccount): Promise<string | null> {
    try {
      return await callMongo(() => this.#insert(id, account));
    } catch (error) {
      if (isDuplicateKey(error)) return null;
      throw error;
    }
  }

  async #insert(id: string, account: NewAccount): Promise<string> {
    const { userType, requestsPerMinute, name, email, note } = account;
    const apiKey = createApiKey();
    const described = describeKey(apiKey);
    await this.#secrets.save(apiKey);
    const document: AccountDocument = {
      _id: id,
      ...described,
      userType,
      requestsPerMinute,
      banned: false,
      banReason: null,
      ...Object.fromEntries(
        Object.entries({ name, email, note }).filter(([, text]) => text !== null && text !== undefined),
      ),
      createdAt: new Date(),
      balanceNano: 0n,
      totalAddedNano: 0n,
      freeRequests: 0,
      charges: 0,
      codes: 0,
      appliedMs: 0,
      appliedSeq: 0,
    };
    await this.#search.add(id, listSearchWords(account));
    try {
      await this.#accounts.insertOne(document);
    } catch (error) {
      if (isDuplicateKey(error)) await this.#secrets.delete(described.keyHash);
      throw error;
    }
    return apiKey;
  }

  /**
   * @param needsLatest whether the read must include every acknowledged write; required for copying a balance to Redis
   */
  async findById(id: string, needsLatest = false): Promise<AccountDocument | null> {
    return await callMongo(() => this.#accounts.findOne({ _id: id }, needsLatest ? linearizableRead : {}));
  }

  async findByIds(ids: readonly string[]): Promise<AccountDocument[]> {
    return await callMongo(() => this.#accounts.find({ _id: { $in: [...ids] } }).toArray());
  }

  async findIdByKeyHash(keyHash: string): Promise<string | null> {
    const found = await callMongo(() => this.#accounts.findOne({ keyHash }, { projection: { _id: 1 } }));
    return found?._id ?? null;
  }

  /** The first account created with this type. Scans all accounts, so it is only for CLI commands. */
  async findFirstOfType(userType: string): Promise<AccountDocument | null> {
    return await callMongo(() => this.#accounts.findOne({ userType }, { sort: { createdAt: 1 } }));
  }

  /** All accounts, oldest first. */
  list(): AsyncIterable<AccountDocument> {
    return this.#accounts.find({}).sort({ createdAt: 1, _id: 1 });
  }

  /**
   * Ids of accounts whose sums include an entry from this time or later, each with the id of the last entry that its
   * sums include.
   */
  async findAppliedSince(ms: number): Promise<Map<string, StreamId>> {
    const found = await this.#accounts
      .find({ appliedMs: { $gte: ms } }, { projection: { appliedMs: 1, appliedSeq: 1 } })
      .toArray();
    return new Map(found.map(({ _id, appliedMs, appliedSeq }) => [_id, { ms: appliedMs, seq: appliedSeq }]));
  }

  /**
   * Lists accounts, newest first.
   * @param after the id of the last account of the page before; null for the first page
   */
  async listPage(after: string | null, limit: number): Promise<AccountDocument[]> {
    const last = after === null ? null : await this.findById(after);
    if (after !== null && last === null) return [];
    return await callMongo(() => this.#accounts.find(isAfter(last)).sort(newestFirst).limit(limit).toArray());
  }

  /** Lists accounts whose ids begin with a text, in the order of their ids. */
  async listByIdPrefix(prefix: string, after: string | null, limit: number): Promise<AccountDocument[]> {
    const range = { ...(after === null ? { $gte: prefix } : { $gt: after }), $lt: `${prefix}~` };
    return await callMongo(() => this.#accounts.find({ _id: range }).sort({ _id: 1 }).limit(limit).toArray());
  }

  /** Finds words of accounts' names, addresses and notes that begin with a text. See `AccountSearchStore.find`. */
  async findWords(prefix: string, after: WordPlace | null, limit: number): Promise<WordPlace[]> {
    return await callMongo(() => this.#search.find(prefix, after, limit));
  }

  async update(id: string, change: AccountChange): Promise<boolean> {
    return await callMongo(async () => {
      const words = listSearchWords(change);
      await this.#search.add(id, words);
      const account = await this.#accounts.findOneAndUpdate(
        { _id: id },
        { $set: change },
        { returnDocument: 'after', projection: { name: 1, email: 1, note: 1 } },
      );
      if (account === null) return false;
      const isSearched = 'name' in change || 'email' in change || 'note' in change;
      if (isSearched) await this.#search.deleteOutdated(id, listSearchWords(account));
      return true;
    });
  }

  /**
   * @returns the account's key in plain text; null if there is no such account, or its key is not the expected one or
   * not stored (REVEAL=off)
   */
  async revealKey(id: string, expected: ExpectedKey = {}): Promise<string | null> {
    const account = await callMongo(() =>
      this.#accounts.findOne(toFilter(id, expected), { projection: { keyHash: 1 } }),
    );
    return account === null ? null : await this.#secrets.reveal(account.keyHash);
  }

  /**
   * Replaces the key. Of two callers that expect the same key, one succeeds. The new secret is stored first: if the
   * account were changed first, a crash in between would leave a key that nobody knows or can reveal.
   * @returns null if there is no such account, or its key is not the expected one
   */
  async replaceKey(id: string, expected: ExpectedKey = {}): Promise<ReplacedKey | null> {
    const apiKey = createApiKey();
    const described = describeKey(apiKey);
    await this.#secrets.save(apiKey);
    const old = await callMongo(() =>
      this.#accounts.findOneAndUpdate(
        toFilter(id, expected),
        { $set: described },
        { returnDocument: 'before', projection: { _id: 0, keyHash: 1, keyMasked: 1 } },
      ),
    );
    if (old === null) {
      await this.#secrets.delete(described.keyHash);
      return null;
    }
    return { apiKey, keyHash: described.keyHash, old };
  }

  /** Deletes the secret of a key that no longer works. */
  async deleteSecret(keyHash: string): Promise<void> {
    await this.#secrets.delete(keyHash);
  }

  /** Undoes a replacement, unless the key has been replaced again. */
  async restoreKey(id: string, { keyHash, old }: ReplacedKey): Promise<void> {
    const { modifiedCount } = await callMongo(() =>
      this.#accounts.updateOne({ _id: id, keyHash }, { $set: old }),
    );
    if (modifiedCount === 1) await this.#secrets.delete(keyHash);
  }
}

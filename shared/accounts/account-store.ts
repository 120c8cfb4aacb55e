import { randomUUID } from 'node:crypto';
import type { StreamId } from '../ledger/usage-event.ts';
import type { Config } from '../runtime/config.ts';
import { callMongo, isDuplicateKey, type Collection, type Database } from '../storage/mongo-client.ts';
import { newestRead } from '../storage/mongo-durability.ts';
import { createApiKey, hashSecret, maskApiKey } from './credentials.ts';
import { KeySecretStore } from './key-secret-store.ts';

/** An account at rest. Its sums are those of the ledger entries up to `applied*`. */
export interface AccountDocument {
  readonly _id: string;
  readonly keyHash: string;
  readonly keyMasked: string;
  readonly userType: string;
  readonly requestsPerMinute: number;
  /** Absent where it was never set: `readJobSettings` knows the default. */
  readonly maxQueuedJobs?: number;
  readonly weight?: number;
  readonly banned: boolean;
  readonly banReason: string | null;
  readonly createdAt: Date;
  readonly balanceNano: bigint;
  readonly totalAddedNano: bigint;
  readonly freeRequests: number;
  /** How many charges and redeemed codes there were: the ordinals of the last ones. */
  readonly charges: number;
  readonly codes: number;
  readonly appliedMs: number;
  readonly appliedSeq: number;
}

export interface NewAccount {
  readonly userType: string;
  readonly requestsPerMinute: number;
}

/** What an operator changes of an account. */
export type AccountChange = Partial<
  Pick<AccountDocument, 'requestsPerMinute' | 'maxQueuedJobs' | 'weight' | 'banned' | 'banReason'>
>;

/** What an account holds of its key: it is looked up by the hash and shown by the mask. */
type DescribedKey = Pick<AccountDocument, 'keyHash' | 'keyMasked'>;

function describeKey(apiKey: string): DescribedKey {
  return { keyHash: hashSecret(apiKey), keyMasked: maskApiKey(apiKey) };
}

export interface ReplacedKey {
  /** The new key in clear: it is nowhere else. */
  readonly apiKey: string;
  readonly keyHash: string;
  /** Also the secret, where an older release left it in the account. */
  readonly old: DescribedKey;
}

/** The key that an account must still have; whichever it is, unless given. */
export interface ExpectedKey {
  readonly expectedKeyHash?: string;
}

const toFilter = (id: string, { expectedKeyHash }: ExpectedKey) =>
  expectedKeyHash === undefined ? { _id: id } : { _id: id, keyHash: expectedKeyHash };

/** Accounts in MongoDB. Money is not set here: it moves by ledger entries alone. */
export class AccountStore {
  readonly #accounts: Collection<AccountDocument>;
  readonly #secrets: KeySecretStore;

  constructor(db: Database, config: Pick<Config, 'masterKey' | 'revealsKeys'>) {
    this.#accounts = db.collection('accounts');
    this.#secrets = new KeySecretStore(db, config);
  }

  async createIndexes(): Promise<void> {
    await this.#accounts.createIndex({ keyHash: 1 }, { unique: true });
    await this.#accounts.createIndex({ createdAt: 1 });
  }

  /** Brings the secrets of keys to what REVEAL says. Safe to repeat. @returns whether MASTER_KEY opens what is stored */
  async prepareSecrets(): Promise<boolean> {
    return await this.#secrets.prepare();
  }

  /** Makes an account without money; the key is returned here and nowhere else. */
  async create(account: NewAccount): Promise<{ id: string; apiKey: string }> {
    const id = randomUUID();
    return { id, apiKey: await this.#insert(id, account) };
  }

  /** Makes an account of this id. @returns its key, which is returned nowhere else; null where there is one already */
  async createWithId(id: string, account: NewAccount): Promise<string | null> {
    try {
      return await callMongo(() => this.#insert(id, account));
    } catch (error) {
      if (isDuplicateKey(error)) return null;
      throw error;
    }
  }

  async #insert(id: string, { userType, requestsPerMinute }: NewAccount): Promise<string> {
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
      createdAt: new Date(),
      balanceNano: 0n,
      totalAddedNano: 0n,
      freeRequests: 0,
      charges: 0,
      codes: 0,
      appliedMs: 0,
      appliedSeq: 0,
    };
    try {
      await this.#accounts.insertOne(document);
    } catch (error) {
      if (isDuplicateKey(error)) await this.#secrets.delete(described.keyHash);
      throw error;
    }
    return apiKey;
  }

  /** @param isNewest whether it must hold everything that was ever acknowledged: for whoever copies its balance to Redis */
  async findById(id: string, isNewest = false): Promise<AccountDocument | null> {
    return await callMongo(() => this.#accounts.findOne({ _id: id }, isNewest ? newestRead : {}));
  }

  async findByIds(ids: readonly string[]): Promise<AccountDocument[]> {
    return await callMongo(() => this.#accounts.find({ _id: { $in: [...ids] } }).toArray());
  }

  async findIdByKeyHash(keyHash: string): Promise<string | null> {
    const found = await callMongo(() => this.#accounts.findOne({ keyHash }, { projection: { _id: 1 } }));
    return found?._id ?? null;
  }

  /** The first account that was made of this kind. It reads them all: for people's commands. */
  async findFirstOfType(userType: string): Promise<AccountDocument | null> {
    return await callMongo(() => this.#accounts.findOne({ userType }, { sort: { createdAt: 1 } }));
  }

  /** Every account, oldest first. */
  list(): AsyncIterable<AccountDocument> {
    return this.#accounts.find({}).sort({ createdAt: 1 });
  }

  /** Accounts whose sums hold an entry of this time or a later one, each with the last that they hold. */
  async findAppliedSince(ms: number): Promise<Map<string, StreamId>> {
    const found = await this.#accounts
      .find({ appliedMs: { $gte: ms } }, { projection: { appliedMs: 1, appliedSeq: 1 } })
      .toArray();
    return new Map(found.map(({ _id, appliedMs, appliedSeq }) => [_id, { ms: appliedMs, seq: appliedSeq }]));
  }

  async update(id: string, change: AccountChange): Promise<boolean> {
    const result = await callMongo(() => this.#accounts.updateOne({ _id: id }, { $set: change }));
    return result.matchedCount === 1;
  }

  /**
   * @returns the account's key in clear; null where there is no such account, its key is not the expected one, or is not
   *   stored (REVEAL=off)
   */
  async revealKey(id: string, expected: ExpectedKey = {}): Promise<string | null> {
    const account = await callMongo(() =>
      this.#accounts.findOne(toFilter(id, expected), { projection: { keyHash: 1 } }),
    );
    return account === null ? null : await this.#secrets.reveal(account.keyHash);
  }

  /**
   * Replaces the key. Of two callers who expect the same key one replaces it. The new secret is stored first: were the
   * account changed first, a crash in between would leave a key that nobody knows and nobody can reveal.
   * @returns null where there is no such account, or its key is not the expected one
   */
  async replaceKey(id: string, expected: ExpectedKey = {}): Promise<ReplacedKey | null> {
    const apiKey = createApiKey();
    const described = describeKey(apiKey);
    await this.#secrets.save(apiKey);
    const old = await callMongo(() =>
      this.#accounts.findOneAndUpdate(
        toFilter(id, expected),
        // The secret of an older release stands here until it is taken over, and belongs to the old key.
        { $set: described, $unset: { keyEncrypted: '' } },
        { returnDocument: 'before', projection: { _id: 0, keyHash: 1, keyMasked: 1, keyEncrypted: 1 } },
      ),
    );
    if (old === null) {
      await this.#secrets.delete(described.keyHash);
      return null;
    }
    return { apiKey, keyHash: described.keyHash, old };
  }

  /** Deletes the secret of a key that opens nothing any more. */
  async forgetSecret(keyHash: string): Promise<void> {
    await this.#secrets.delete(keyHash);
  }

  /** Undoes a replacement, unless the key was replaced again since. */
  async restoreKey(id: string, { keyHash, old }: ReplacedKey): Promise<void> {
    const { modifiedCount } = await callMongo(() =>
      this.#accounts.updateOne({ _id: id, keyHash }, { $set: old }),
    );
    if (modifiedCount === 1) await this.#secrets.delete(keyHash);
  }
}

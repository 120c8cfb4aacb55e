import { randomUUID } from 'node:crypto';
import type { LowBalance } from '../ledger/low-balance.ts';
import type { StreamId } from '../ledger/usage-event.ts';
import { AppError } from '../contract/errors.ts';
import type { Config } from '../platform/config/config.ts';
import {
  callMongo,
  isDuplicateKey,
  type Collection,
  type Database,
} from '../platform/storage/mongo-client.ts';
import { linearizableRead } from '../platform/storage/mongo-durability.ts';
import { settingNames, type AccountSettings, type SettingsChange } from './account-settings.ts';
import { isAfter, newestFirst } from '../platform/storage/newest-first.ts';
import { AccountSearchStore, type WordPlace } from './account-search-store.ts';
import { createApiKey, hashSecret, maskApiKey } from './credentials.ts';
import { KeySecretStore } from './key-secret-store.ts';
import { listSearchWords } from './search-words.ts';

/** An account in MongoDB. Its sums cover the ledger entries up to `applied*`. */
export interface AccountDocument extends AccountSettings {
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
  /** How many rows the account has in the request log and in the refill log. Each number is also the ordinal of the latest one. */
  readonly charges: number;
  readonly codes: number;
  readonly appliedMs: number;
  readonly appliedSeq: number;
  /** What was spent on each day (`YYYY-MM-DD`), for budgets. Absent until something was. */
  readonly spentByDay?: Readonly<Record<string, bigint>>;
  /** Set while the balance is below `lowBalanceNano`. */
  readonly low?: LowBalance;
  /** Only of an account that was created with an `Idempotency-Key`. */
  readonly creation?: AccountCreation;
}

/** What the creation of an account asked for, against which its repetitions are checked. */
export interface AccountCreation {
  readonly amountNano: bigint;
  readonly freeRequests: number;
  /** Of the other fields of the request. */
  readonly requestHash: string;
  /** Of the key that the account was created with. */
  readonly keyHash: string;
}

/** Settings are optional; null is none. */
export interface NewAccount extends SettingsChange {
  readonly userType: string;
  readonly requestsPerMinute: number;
  readonly creation?: Omit<AccountCreation, 'keyHash'> | undefined;
}

/** The fields of an account that operators can change. Null clears a setting. */
export type AccountChange = Partial<
  Pick<AccountDocument, 'requestsPerMinute' | 'maxQueuedJobs' | 'weight' | 'banned' | 'banReason'>
> &
  SettingsChange;

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

/** A new threshold is set once no ledger entry is applied at the same time, which takes milliseconds. */
const maxThresholdAttempts = 50;

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
    await this.#accounts.createIndex({ banned: 1, createdAt: 1, _id: 1 });
    // Indexes only balances whose owners must still be told, so it stays small.
    await this.#accounts.createIndex({ 'low.at': 1 }, { partialFilterExpression: { 'low.isMailed': false } });
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
    const { userType, requestsPerMinute, lowBalanceNano, creation } = account;
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
      ...(creation !== undefined && { creation: { ...creation, keyHash: described.keyHash } }),
      // A balance that was never above the threshold does not fall below it.
      ...((lowBalanceNano ?? 0n) > 0n && { low: { at: new Date(), id: 'set', isMailed: true } }),
      ...Object.fromEntries(settingNames.flatMap((name) => (account[name] ? [[name, account[name]]] : []))),
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

  /** What people call these accounts: their names, or else their addresses. Those without either are left out. */
  async findNames(ids: readonly string[]): Promise<Map<string, string>> {
    const projection = { name: 1, email: 1 };
    const found = await callMongo(() =>
      this.#accounts.find({ _id: { $in: [...ids] } }, { projection }).toArray(),
    );
    return new Map(
      found.flatMap(({ _id, name, email }) => {
        const shown = name ?? email ?? null;
        return shown === null ? [] : [[_id, shown] as const];
      }),
    );
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
   * @param banned only those that are banned, or are not
   */
  async listPage(after: string | null, limit: number, banned?: boolean): Promise<AccountDocument[]> {
    const last = after === null ? null : await this.findById(after);
    if (after !== null && last === null) return [];
    const filter = { ...(banned !== undefined && { banned }), ...isAfter(last) };
    return await callMongo(() => this.#accounts.find(filter).sort(newestFirst).limit(limit).toArray());
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

  /** @returns false if there is no such account */
  async update(id: string, change: AccountChange): Promise<boolean> {
    const { lowBalanceNano } = change;
    if (Object.values(change).every((value) => value === undefined))
      return (await this.findById(id)) !== null;
    if (lowBalanceNano === undefined) return await this.#change(id, {}, change);
    for (let attempt = 1; attempt <= maxThresholdAttempts; attempt++) {
      const account = await this.findById(id);
      if (account === null) return false;
      const { appliedMs, appliedSeq, balanceNano, low } = account;
      // A balance that is already below a new threshold does not fall below it, so it is no reason for a mail.
      const isLow = lowBalanceNano !== null && balanceNano < lowBalanceNano;
      const state = isLow ? (low ?? { at: new Date(), id: 'set', isMailed: true }) : null;
      if (await this.#change(id, { appliedMs, appliedSeq }, change, { low: state })) return true;
    }
    throw new AppError('service_unavailable', { message: `account ${id} changes too fast to be updated` });
  }

  /** @param expected what the account must still be. @returns false if it is not */
  async #change(
    id: string,
    expected: Partial<Pick<AccountDocument, 'appliedMs' | 'appliedSeq'>>,
    change: AccountChange,
    more: { readonly low?: LowBalance | null } = {},
  ): Promise<boolean> {
    const values = Object.entries({ ...change, ...more });
    // A ban reason is stored as null.
    const isCleared = ([name, value]: (typeof values)[number]): boolean =>
      value === null && name !== 'banReason';
    const cleared = values.filter(isCleared).map(([name]) => [name, '']);
    const set = values.filter((entry) => entry[1] !== undefined && !isCleared(entry));
    const update = {
      ...(set.length > 0 && { $set: Object.fromEntries(set) }),
      ...(cleared.length > 0 && { $unset: Object.fromEntries(cleared) }),
    };
    return await callMongo(async () => {
      await this.#search.add(id, listSearchWords(change));
      const account = await this.#accounts.findOneAndUpdate({ _id: id, ...expected }, update, {
        returnDocument: 'after',
        projection: { name: 1, email: 1, note: 1 },
      });
      if (account === null) return false;
      const isSearched = 'name' in change || 'email' in change || 'note' in change;
      if (isSearched) await this.#search.deleteOutdated(id, listSearchWords(account));
      return true;
    });
  }

  /** Accounts whose balance fell below their threshold, and whose owners must still be told, longest first. */
  async findLow(limit: number): Promise<AccountDocument[]> {
    return await callMongo(() =>
      this.#accounts.find({ 'low.isMailed': false }).sort({ 'low.at': 1 }).limit(limit).toArray(),
    );
  }

  /** Records that the owner was told. Does nothing if the balance has risen above the threshold since. */
  async markLowMailed(accountId: string, { id }: LowBalance): Promise<void> {
    await callMongo(() =>
      this.#accounts.updateOne({ _id: accountId, 'low.id': id }, { $set: { 'low.isMailed': true } }),
    );
  }

  /** Removes what was spent on these days (`YYYY-MM-DD`), which no budget counts any more. */
  async forgetSpending(days: readonly string[]): Promise<void> {
    const names = days.map((day) => `spentByDay.${day}`);
    await callMongo(() =>
      this.#accounts.updateMany(
        { $or: names.map((name) => ({ [name]: { $exists: true } })) },
        { $unset: Object.fromEntries(names.map((name) => [name, ''])) },
      ),
    );
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

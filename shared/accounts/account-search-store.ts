// decision 0098
import type { Collection, Database } from '../platform/storage/mongo-client.ts';

/** A word by which an account is found. It may be outdated: readers check it with the account itself. */
interface AccountWord {
  /** The word, a space, and the id of the account. */
  readonly _id: string;
  readonly accountId: string;
  readonly at: Date;
}

/** A place in the list of words: a word and an account that has it. */
export interface WordPlace {
  readonly word: string;
  readonly accountId: string;
}

/** A word that an account does not have any more may belong to a change in progress until it is this old. */
const minOutdatedMs = 3_600_000;
/** The first character after all characters. */
const afterAll = '\u{10ffff}';

const toId = ({ word, accountId }: WordPlace): string => `${word} ${accountId}`;

/**
 * The words of accounts' texts, in their own collection, so that a page of a search is a range of an index. Words are
 * added before their account changes, so none is missing.
 */
export class AccountSearchStore {
  readonly #words: Collection<AccountWord>;

  constructor(db: Database) {
    this.#words = db.collection('account_words');
  }

  async createIndexes(): Promise<void> {
    await this.#words.createIndex({ accountId: 1 });
  }

  async add(accountId: string, words: Iterable<string>): Promise<void> {
    const at = new Date();
    const writes = Array.from(words, (word) => ({
      updateOne: {
        filter: { _id: toId({ word, accountId }) },
        update: { $set: { accountId, at } },
        upsert: true,
      },
    }));
    if (writes.length > 0) await this.#words.bulkWrite(writes, { ordered: false });
  }

  /** Deletes words that the account no longer has. */
  async deleteOutdated(accountId: string, words: ReadonlySet<string>): Promise<void> {
    const before = new Date(Date.now() - minOutdatedMs);
    const old = await this.#words.find({ accountId, at: { $lt: before } }).toArray();
    const ids = old
      .filter(({ _id }) => !words.has(_id.slice(0, -accountId.length - 1)))
      .map(({ _id }) => _id);
    if (ids.length > 0) await this.#words.deleteMany({ _id: { $in: ids } });
  }

  /**
   * Finds words that begin with a text, in their order.
   * @param after the last place of the page before; null for the first one
   */
  async find(prefix: string, after: WordPlace | null, limit: number): Promise<WordPlace[]> {
    const range = { ...(after === null ? { $gte: prefix } : { $gt: toId(after) }), $lt: prefix + afterAll };
    const found = await this.#words.find({ _id: range }).sort({ _id: 1 }).limit(limit).toArray();
    return found.map(({ _id, accountId }) => ({ word: _id.slice(0, -accountId.length - 1), accountId }));
  }
}

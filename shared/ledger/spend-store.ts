// decision 0097
import type mongoose from 'mongoose';
import { callMongo, type Collection, type Database } from '../platform/storage/mongo-client.ts';
import type { SumsDocument } from './add-to-sums.ts';
import { sumSpend, type SpendDimension, type SpendRow, type SpendSums } from './sum-spend.ts';

/** The sums of a day of an account's requests to a model; `_id` is `account:day:model`. Kept forever. */
export interface AccountSpendDocument extends SpendSums, SumsDocument {
  readonly accountId: string;
  readonly model: string;
  /** YYYY-MM-DD, in UTC. */
  readonly day: string;
}

/** The sums of a day of all requests to a model, by accounts of one shard; `_id` is `shard:day:model`. Kept forever. */
export interface ModelSpendDocument extends SpendSums, SumsDocument {
  readonly shard: number;
  /** `allModels` for the sums over all models. */
  readonly model: string;
  readonly day: string;
}

export interface SpendFilter {
  readonly accountId?: string | undefined;
  readonly model?: string | undefined;
  /** Days as YYYY-MM-DD in UTC, both included. */
  readonly since: string;
  readonly until: string;
}

type StoredSpend = SpendSums & { readonly accountId?: string; readonly model: string; readonly day: string };

/** In place of a model, in sums over all models of a shard. Totals of a month are then few documents. */
export const allModels = '';

/** Accounts whose sums are read together. */
const accountsPerRead = 200;

/**
 * The daily sums of requests. Those of accounts are also kept without the account, so that sums over all accounts are
 * read in a time that does not depend on how many there are.
 */
export class SpendStore {
  readonly ofAccounts: Collection<AccountSpendDocument>;
  readonly ofModels: Collection<ModelSpendDocument>;
  readonly #accounts: Collection<{ _id: string }>;

  constructor(db: Database) {
    this.ofAccounts = db.collection('account_spend');
    this.ofModels = db.collection('model_spend');
    this.#accounts = db.collection('accounts');
  }

  async createIndexes(): Promise<void> {
    await this.ofAccounts.createIndex({ accountId: 1, day: 1, model: 1 });
    await this.ofModels.createIndex({ day: 1, model: 1 });
    await this.ofModels.createIndex({ model: 1, day: 1 });
  }

  /**
   * Yields sums by some of account, day and model, in the order of these three. Holds at most one row per model in
   * memory, and a read of MongoDB.
   */
  async *read(filter: SpendFilter, by: ReadonlySet<SpendDimension>): AsyncGenerator<SpendRow> {
    const documents =
      filter.accountId === undefined && by.has('account')
        ? this.#readAllAccounts(filter)
        : filter.accountId === undefined
          ? this.#readModels(filter, by)
          : this.#readAccount(filter, filter.accountId);
    yield* sumSpend(documents, by);
  }

  /** Sums everything that the filter selects. */
  async sum(filter: SpendFilter): Promise<SpendRow | null> {
    for await (const row of this.read(filter, new Set())) return row;
    return null;
  }

  async *#readAccount({ model, since, until }: SpendFilter, accountId: string): AsyncGenerator<StoredSpend> {
    const within = { day: { $gte: since, $lte: until }, ...(model !== undefined && { model }) };
    yield* this.ofAccounts.find({ accountId, ...within }).sort({ day: 1, model: 1 });
  }

  /** Sums over all accounts, by day. */
  async *#readModels(
    { model, since, until }: SpendFilter,
    by: ReadonlySet<SpendDimension>,
  ): AsyncGenerator<StoredSpend> {
    const day = { $gte: since, $lte: until };
    yield* model === undefined && by.has('model')
      ? this.ofModels.find({ day, model: { $gt: allModels } }).sort({ day: 1, model: 1 })
      : this.ofModels.find({ model: model ?? allModels, day }).sort({ day: 1 });
  }

  /** Sums of all accounts, one account after the other. */
  async *#readAllAccounts({ model, since, until }: SpendFilter): AsyncGenerator<StoredSpend> {
    const within = { day: { $gte: since, $lte: until }, ...(model !== undefined && { model }) };
    let last = '';
    for (;;) {
      const ids = await this.#readAccountIds(last);
      if (ids.length === 0) return;
      last = ids.at(-1)!;
      const filter: mongoose.mongo.Filter<AccountSpendDocument> = { accountId: { $in: ids }, ...within };
      yield* this.ofAccounts.find(filter).sort({ accountId: 1, day: 1, model: 1 });
    }
  }

  async #readAccountIds(after: string): Promise<string[]> {
    const found = await callMongo(() =>
      this.#accounts
        .find({ _id: { $gt: after } }, { projection: { _id: 1 } })
        .sort({ _id: 1 })
        .limit(accountsPerRead)
        .toArray(),
    );
    return found.map(({ _id }) => _id);
  }
}

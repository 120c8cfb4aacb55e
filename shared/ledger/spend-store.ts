// decision 0097
import type mongoose from 'mongoose';
import {
  callMongo,
  type Collection,
  type Database,
  type FindCursor,
} from '../platform/storage/mongo-client.ts';
import type { SumsDocument } from './add-to-sums.ts';
import { spendSums, sumSpend, type SpendDimension, type SpendRow, type SpendSums } from './sum-spend.ts';

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

/**
 * The sums of a day of the requests to a model that an upstream was the last to be called for, by accounts of one shard;
 * `_id` is `shard:day:upstream model`. Without lines of batches, and only since the release that brought it. Kept forever.
 */
export interface UpstreamSpendDocument extends ModelSpendDocument {
  readonly upstream: string;
}

export interface SpendFilter {
  readonly accountId?: string | undefined;
  /** Not together with an account, also not as a dimension. */
  readonly upstream?: string | undefined;
  readonly model?: string | undefined;
  /** Days as YYYY-MM-DD in UTC, both included. */
  readonly since: string;
  readonly until: string;
}

interface StoredSpend extends SpendSums {
  readonly accountId?: string;
  readonly name?: string;
  readonly upstream?: string;
  readonly model: string;
  readonly day: string;
}

interface NamedAccount {
  readonly _id: string;
  readonly name?: string;
  readonly email?: string;
}

/** In place of a model, in sums over all models of a shard. Totals of a month are then few documents. */
export const allModels = '';

/** Accounts whose sums are read together. */
const accountsPerRead = 200;
/** MongoDB aborts a read that takes longer. One read has several batches. */
const limits = { maxTimeMS: 5_000, batchSize: 1_000 };

/** Runs one read of the store, such as in a turn of the caller. It may fail, which ends the reading. */
export type RunRead = <T>(read: () => Promise<T>) => Promise<T>;

/**
 * The daily sums of requests. Those of accounts are also kept without the account, so that sums over all accounts are
 * read in a time that does not depend on how many there are.
 */
export class SpendStore {
  readonly ofAccounts: Collection<AccountSpendDocument>;
  readonly ofModels: Collection<ModelSpendDocument>;
  readonly ofUpstreams: Collection<UpstreamSpendDocument>;
  readonly #accounts: Collection<NamedAccount>;

  constructor(db: Database) {
    this.ofAccounts = db.collection('account_spend');
    this.ofModels = db.collection('model_spend');
    this.ofUpstreams = db.collection('upstream_spend');
    this.#accounts = db.collection('accounts');
  }

  async createIndexes(): Promise<void> {
    await this.ofAccounts.createIndex({ accountId: 1, day: 1, model: 1 });
    await this.ofModels.createIndex({ day: 1, model: 1 });
    await this.ofModels.createIndex({ model: 1, day: 1 });
    await this.ofUpstreams.createIndex({ day: 1, model: 1 });
    await this.ofUpstreams.createIndex({ model: 1, day: 1 });
  }

  /**
   * Yields sums by some of account, day and model, in the order of these three: the rows of one read after the other,
   * which may be none. Holds at most one row per model in memory, and a read of MongoDB.
   * @throws AppError `service_unavailable`; whatever `runRead` throws
   */
  async *readPages(
    filter: SpendFilter,
    by: ReadonlySet<SpendDimension>,
    runRead: RunRead = (read) => read(),
  ): AsyncGenerator<SpendRow[]> {
    const run: RunRead = (read) => runRead(() => callMongo(read));
    const { upstream } = filter;
    const pages =
      upstream !== undefined || by.has('upstream')
        ? readBatches(
            findOfModels(this.ofUpstreams, filter, by, upstream === undefined ? {} : { upstream }),
            run,
          )
        : filter.accountId === undefined && by.has('account')
          ? this.#readAllAccounts(filter, by, run)
          : filter.accountId === undefined
            ? readBatches(findOfModels(this.ofModels, filter, by), run)
            : this.#readAccount(filter, filter.accountId, by, run);
    yield* sumSpend(pages, by);
  }

  /** Like `readPages`, one row after the other. */
  async *read(filter: SpendFilter, by: ReadonlySet<SpendDimension>): AsyncGenerator<SpendRow> {
    for await (const rows of this.readPages(filter, by)) yield* rows;
  }

  /** Sums everything that the filter selects. */
  async sum(filter: SpendFilter): Promise<SpendRow | null> {
    for await (const row of this.read(filter, new Set())) return row;
    return null;
  }

  async *#readAccount(
    { model, since, until }: SpendFilter,
    accountId: string,
    by: ReadonlySet<SpendDimension>,
    run: RunRead,
  ): AsyncGenerator<StoredSpend[]> {
    const within = { day: { $gte: since, $lte: until }, ...(model !== undefined && { model }) };
    const names = by.has('account') ? await run(() => this.#readNames({ _id: accountId })) : new Map();
    const cursor = this.ofAccounts.find({ accountId, ...within }, limits).sort({ day: 1, model: 1 });
    for await (const page of readBatches(cursor, run)) yield addNames(page, names);
  }

  /** Sums of all accounts, one account after the other. Accounts without sums give empty pages. */
  async *#readAllAccounts(
    { model, since, until }: SpendFilter,
    by: ReadonlySet<SpendDimension>,
    run: RunRead,
  ): AsyncGenerator<StoredSpend[]> {
    // Otherwise there is nothing to add up.
    const isSummed = !by.has('day') || (model === undefined && !by.has('model'));
    const within = { day: { $gte: since, $lte: until }, ...(model !== undefined && { model }) };
    let last = '';
    for (;;) {
      const names = await run(() => this.#readNames({ _id: { $gt: last } }));
      const ids = [...names.keys()];
      if (ids.length === 0) return;
      last = ids.at(-1)!;
      const select = (some: readonly string[]): mongoose.mongo.Filter<AccountSpendDocument> => ({
        accountId: { $in: some },
        ...within,
      });
      if (isSummed) {
        // MongoDB uses one thread for each read, so two at once take about half as long.
        const half = Math.ceil(ids.length / 2);
        const parts = [ids.slice(0, half), ids.slice(half)];
        const sums = await run(() => Promise.all(parts.map((part) => this.#sumAccounts(select(part), by))));
        yield addNames(sums.flat(), names);
        continue;
      }
      let isEmpty = true;
      const cursor = this.ofAccounts.find(select(ids), limits).sort({ accountId: 1, day: 1, model: 1 });
      for await (const page of readBatches(cursor, run)) {
        isEmpty = false;
        yield addNames(page, names);
      }
      if (isEmpty) yield [];
    }
  }

  /** Has MongoDB add up what it would take long to send. A sum of more than 9 billion roubles would not be exact. */
  async #sumAccounts(
    selected: mongoose.mongo.Filter<AccountSpendDocument>,
    by: ReadonlySet<SpendDimension>,
  ): Promise<(StoredSpend & { readonly accountId: string })[]> {
    const fields = ['accountId', ...(by.has('day') ? ['day'] : []), ...(by.has('model') ? ['model'] : [])];
    const group = {
      _id: Object.fromEntries(fields.map((field) => [field, `$${field}`])),
      ...Object.fromEntries(spendSums.map((field) => [field, { $sum: `$${field}` }])),
    };
    const found = await this.ofAccounts
      .aggregate<SummedSpend>([{ $match: selected }, { $group: group }], limits)
      .toArray();
    return found
      .map(({ _id: { accountId, day = '', model = '' }, ...sums }) => ({
        accountId,
        day,
        model,
        ...sums,
        costNano: BigInt(sums.costNano),
        vendorCostNano: BigInt(sums.vendorCostNano),
        costedNano: BigInt(sums.costedNano),
      }))
      .sort((one, other) => compare(one.accountId, other.accountId) || compare(one.day, other.day));
  }

  /** The names of some accounts, by their ids, in the order of these. */
  async #readNames(filter: mongoose.mongo.Filter<NamedAccount>): Promise<Map<string, string | undefined>> {
    const found = await this.#accounts
      .find(filter, { projection: { name: 1, email: 1 }, maxTimeMS: limits.maxTimeMS })
      .sort({ _id: 1 })
      .limit(accountsPerRead)
      .toArray();
    return new Map(found.map(({ _id, name, email }) => [_id, name ?? email]));
  }
}

type Amount = 'costNano' | 'vendorCostNano' | 'costedNano';

/** A group of sums. An amount is a number if all documents lack it. */
type SummedSpend = Omit<SpendSums, Amount> & {
  readonly [Name in Amount]: number | bigint;
} & {
  readonly _id: { readonly accountId: string; readonly day?: string; readonly model?: string };
};

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

function addNames(
  page: readonly (StoredSpend & { readonly accountId: string })[],
  names: ReadonlyMap<string, string | undefined>,
): StoredSpend[] {
  return page.map((document) => {
    const name = names.get(document.accountId);
    return name === undefined ? document : { ...document, name };
  });
}

/** Sums over all accounts, by day. */
function findOfModels<T extends ModelSpendDocument>(
  collection: Collection<T>,
  { model, since, until }: SpendFilter,
  by: ReadonlySet<SpendDimension>,
  more: object = {},
): FindCursor<StoredSpend> {
  const day = { $gte: since, $lte: until };
  const isByModel = model === undefined && by.has('model');
  const selected = isByModel ? { day, model: { $gt: allModels } } : { model: model ?? allModels, day };
  const filter = { ...selected, ...more } as unknown as mongoose.mongo.Filter<T>;
  return (collection as unknown as Collection<ModelSpendDocument>)
    .find(filter as mongoose.mongo.Filter<ModelSpendDocument>, limits)
    .sort(isByModel ? { day: 1, model: 1 } : { day: 1 });
}

/** Yields what a cursor finds, as MongoDB sends it. */
async function* readBatches<T>(cursor: FindCursor<T>, run: RunRead): AsyncGenerator<T[]> {
  try {
    while (await run(() => cursor.hasNext())) yield cursor.readBufferedDocuments();
  } finally {
    await cursor.close();
  }
}

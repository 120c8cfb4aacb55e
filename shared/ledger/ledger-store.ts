import type mongoose from 'mongoose';
import { insertMissing } from '../platform/storage/insert-missing.ts';
import type { Collection, Database } from '../platform/storage/mongo-client.ts';
import { IntentStore } from './intent-store.ts';
import { describeCredit, type RefillLogDocument, type RequestedCredit } from './refill-rows.ts';
import { firstStreamId, isAfter, type LedgerEntry, type StreamId, type UsageEvent } from './usage-event.ts';

/** Every entry that ever changed a balance; kept forever. `_id` is the id of the request or refill. */
export interface LedgerDocument extends RequestedCredit {
  readonly _id: string;
  readonly kind: 'charge' | 'refill';
  readonly accountId: string;
  readonly at: Date;
  /** Negative for a charge. */
  readonly amountNano: bigint;
  readonly freeRequests: number;
  readonly shortfallNano: bigint;
  readonly priceVersion: string | null;
  /**
   * Its number among the account's rows in the request log or the refill log; 0 for lines of a batch, and null for a refill
   * without a row.
   */
  readonly ordinal: number | null;
  readonly streamMs: number;
  readonly streamSeq: number;
}

/** One row of the request log; kept for 72 hours. `_id` is the request's id. */
export interface RequestLogDocument extends Omit<UsageEvent, 'v' | 'requestId' | 'at'> {
  readonly _id: string;
  /** When the request was admitted. */
  readonly at: Date;
  /** When the request was settled. Rows expire at a fixed time after this, in the order of their ordinals. */
  readonly settledAt: Date;
  /** Numbers the account's rows from 1, without gaps, in the order of settlement. */
  readonly ordinal: number;
  readonly costNano: bigint;
  readonly shortfallNano: bigint;
  readonly free: boolean;
}

/** The sums of one day of an account; `_id` is `account:YYYY-MM-DD`, the day in UTC. */
export interface DailyStatDocument extends Applied {
  readonly _id: string;
  readonly accountId: string;
  readonly day: string;
  readonly requests: number;
  readonly promptTokens: number;
  readonly cacheReadTokens: number;
  readonly completionTokens: number;
  readonly costNano: bigint;
  readonly freeRequests: number;
}

/** The last stream entry included in a document's sums. It distinguishes a repeated entry from a new one. */
export interface Applied {
  readonly appliedMs: number;
  readonly appliedSeq: number;
}

/** Sums over some of an account's entries. */
export interface LedgerSums {
  readonly amountNano: bigint;
  /** From refills that added money. */
  readonly addedNano: bigint;
  readonly freeRequests: number;
  /** Those with a row in the request log. */
  readonly charges: number;
  readonly entries: number;
}

interface AccountSums extends Applied {
  readonly _id: string;
}

interface Checkpoint {
  readonly _id: string;
  readonly ms: number;
  readonly seq: number;
}

/**
 * Another reader has applied entries since this one last read. Entries that were not written must not be trimmed: the
 * batch is read again, and entries that are still new are applied.
 */
export class LedgerConflict extends Error {
  override readonly name = 'LedgerConflict';
}

export const logLifetimeSeconds = 72 * 60 * 60;

/** The ledger in MongoDB. Writes are idempotent by id, or conditional on the last entry applied before. */
export class LedgerStore {
  readonly entries: Collection<LedgerDocument>;
  readonly logs: Collection<RequestLogDocument>;
  readonly refillLogs: Collection<RefillLogDocument>;
  readonly stats: Collection<DailyStatDocument>;
  readonly intents: IntentStore;
  readonly #accounts: Collection<AccountSums>;
  readonly #checkpoints: Collection<Checkpoint>;

  constructor(db: Database) {
    this.entries = db.collection('ledger');
    this.logs = db.collection('request_logs');
    this.refillLogs = db.collection('refill_logs');
    this.stats = db.collection('daily_stats');
    this.intents = new IntentStore(db);
    this.#accounts = db.collection('accounts');
    this.#checkpoints = db.collection('ledger_checkpoints');
  }

  async createIndexes(): Promise<void> {
    await this.entries.createIndex({ accountId: 1, streamMs: 1, streamSeq: 1 });
    await this.logs.createIndex({ settledAt: 1 }, { expireAfterSeconds: logLifetimeSeconds });
    await this.logs.createIndex({ accountId: 1, ordinal: -1 });
    await this.refillLogs.createIndex({ accountId: 1, ordinal: -1 });
    await this.stats.createIndex({ accountId: 1, day: 1 });
  }

  async readCheckpoint(shard: number): Promise<StreamId> {
    const found = await this.#checkpoints.findOne({ _id: String(shard) });
    return found === null ? firstStreamId : { ms: found.ms, seq: found.seq };
  }

  /** Moves the checkpoint forward, never back, because a reader that lost its lease may write late. */
  async writeCheckpoint(shard: number, id: StreamId): Promise<void> {
    const before = { $or: [{ ms: { $lt: id.ms } }, { ms: id.ms, seq: { $lt: id.seq } }] };
    const moved = await this.#checkpoints.updateOne(
      { _id: String(shard), ...before },
      { $set: { ms: id.ms, seq: id.seq } },
    );
    if (moved.matchedCount === 0)
      await insertMissing(this.#checkpoints, [{ _id: String(shard), ms: id.ms, seq: id.seq }]);
  }

  /** Entries of these accounts in MongoDB after a position of the stream, oldest first. */
  async findAfter(accountIds: readonly string[], position: StreamId): Promise<LedgerDocument[]> {
    if (accountIds.length === 0) return [];
    const found = await this.entries
      .find({ accountId: { $in: [...accountIds] }, streamMs: { $gte: position.ms } })
      .sort({ streamMs: 1, streamSeq: 1 })
      .toArray();
    return found.filter(({ streamMs, streamSeq }) => isAfter({ ms: streamMs, seq: streamSeq }, position));
  }

  async findEntries(ids: readonly string[]): Promise<LedgerDocument[]> {
    return ids.length === 0 ? [] : await this.entries.find({ _id: { $in: [...ids] } }).toArray();
  }

  /**
   * Sums the entries of the lines of a batch for one model.
   * @param rowId of a row of the batch in the request log
   */
  async sumLines(rowId: string, model: string): Promise<bigint> {
    const [batchId] = rowId.split(':');
    let sum = 0n;
    // The ids of entries begin with the id of the batch and a slash, which `0` follows in ASCII.
    const entries = this.entries.find(
      { _id: { $gte: `${batchId}/`, $lt: `${batchId}0` } },
      { projection: { amountNano: 1 } },
    );
    for await (const { _id, amountNano } of entries) {
      // `{batch}/{slice}.{step}/{model}`; a model may have slashes.
      const [, , ...names] = _id.split('/');
      if (names.join('/') === model) sum += amountNano;
    }
    return sum;
  }

  /** Sums an account's entries in MongoDB up to a position of the stream. Reads all of them. */
  async sumApplied(accountId: string, applied: StreamId): Promise<LedgerSums> {
    const upTo = {
      $or: [{ streamMs: { $lt: applied.ms } }, { streamMs: applied.ms, streamSeq: { $lte: applied.seq } }],
    };
    const sums = { amountNano: 0n, addedNano: 0n, freeRequests: 0, charges: 0, entries: 0 };
    const rows = this.entries.find(
      { accountId, ...upTo },
      { projection: { kind: 1, amountNano: 1, freeRequests: 1, ordinal: 1 } },
    );
    for await (const { kind, amountNano, freeRequests, ordinal } of rows) {
      sums.amountNano += amountNano;
      sums.freeRequests += freeRequests;
      sums.entries += 1;
      if (kind === 'charge') sums.charges += ordinal === 0 ? 0 : 1;
      else if (amountNano > 0n) sums.addedNano += amountNano;
    }
    return sums;
  }

  /**
   * Inserts the documents that are not there yet.
   * @returns the documents that are already stored from another stream position: they were created again after Redis
   * lost them, or were returned to the ledger twice
   * @throws LedgerConflict if a new primary does not show all of them yet
   */
  async insertEntries(documents: readonly LedgerDocument[]): Promise<ReadonlySet<LedgerDocument>> {
    if ((await insertMissing(this.entries, documents)) === documents.length) return new Set();
    const ids = new Set(documents.map(({ _id }) => _id));
    const stored = new Map((await this.findEntries([...ids])).map((document) => [document._id, document]));
    // A document that is not visible yet cannot be compared with its entry, and its amount may already have been
    // applied.
    if (stored.size < ids.size) throw new LedgerConflict();
    return new Set(
      documents.filter(({ _id, streamMs, streamSeq }) => {
        const first = stored.get(_id);
        return first?.streamMs !== streamMs || first.streamSeq !== streamSeq;
      }),
    );
  }

  async insertLogs(documents: readonly RequestLogDocument[]): Promise<void> {
    await insertMissing(this.logs, documents);
  }

  async insertRefillLogs(documents: readonly RefillLogDocument[]): Promise<void> {
    await insertMissing(this.refillLogs, documents);
  }

  async findAppliedPositions(ids: readonly string[]): Promise<Map<string, StreamId>> {
    return await findApplied(this.#accounts, ids);
  }

  async findStatsApplied(ids: readonly string[]): Promise<Map<string, StreamId>> {
    return await findApplied(this.stats, ids);
  }

  /**
   * Adds sums to accounts. Changes an account only if nothing has been applied to it since `from` was read.
   * @throws LedgerConflict if any account was not changed
   */
  async addToAccounts(
    changes: readonly {
      readonly id: string;
      readonly from: StreamId;
      readonly to: StreamId;
      readonly balanceNano: bigint;
      readonly addedNano: bigint;
      readonly freeRequests: number;
      /** The highest ordinals among the added entries. */
      readonly charges: number;
      readonly codes: number;
    }[],
  ): Promise<void> {
    if (changes.length === 0) return;
    const { matchedCount } = await this.#accounts.bulkWrite(
      changes.map(({ id, from, to, balanceNano, addedNano, freeRequests, charges, codes }) => ({
        updateOne: {
          filter: { _id: id, appliedMs: from.ms, appliedSeq: from.seq },
          update: {
            $inc: { balanceNano, totalAddedNano: addedNano, freeRequests },
            $max: { charges, codes },
            $set: { appliedMs: to.ms, appliedSeq: to.seq },
          },
        },
      })),
      { ordered: false },
    );
    if (matchedCount < changes.length) throw new LedgerConflict();
  }

  /** Adds rows already in MongoDB to their account. @throws LedgerConflict as `addToAccounts` does */
  async addRows(id: string, from: StreamId, rows: readonly LedgerDocument[]): Promise<void> {
    const last = rows[rows.length - 1]!;
    const highest = (kind: LedgerDocument['kind']): number =>
      Math.max(0, ...rows.filter((row) => row.kind === kind).map((row) => row.ordinal ?? 0));
    const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((total, amount) => total + amount, 0n);
    const refills = rows.filter((row) => row.kind === 'refill' && row.amountNano > 0n);
    await this.addToAccounts([
      {
        id,
        from,
        to: { ms: last.streamMs, seq: last.streamSeq },
        balanceNano: sum(rows.map((row) => row.amountNano)),
        addedNano: sum(refills.map((row) => row.amountNano)),
        freeRequests: rows.reduce((total, row) => total + row.freeRequests, 0),
        charges: highest('charge'),
        codes: highest('refill'),
      },
    ]);
  }

  /**
   * Adds sums to daily stats. Changes a day only if nothing has been applied to it since `from` was read. If `from` is
   * null, the day is new.
   * @throws LedgerConflict if any day was not changed
   */
  async addToStats(
    changes: readonly {
      readonly from: StreamId | null;
      readonly sums: DailyStatDocument;
    }[],
  ): Promise<void> {
    const added = changes.filter((change) => change.from === null).map((change) => change.sums);
    if ((await insertMissing(this.stats, added)) < added.length) throw new LedgerConflict();
    const existing = changes.filter((change) => change.from !== null);
    if (existing.length === 0) return;
    const { matchedCount } = await this.stats.bulkWrite(
      existing.map(({ from, sums }) => ({
        updateOne: {
          filter: { _id: sums._id, appliedMs: from!.ms, appliedSeq: from!.seq },
          update: {
            $inc: {
              requests: sums.requests,
              promptTokens: sums.promptTokens,
              cacheReadTokens: sums.cacheReadTokens,
              completionTokens: sums.completionTokens,
              costNano: sums.costNano,
              freeRequests: sums.freeRequests,
            },
            $set: { appliedMs: sums.appliedMs, appliedSeq: sums.appliedSeq },
          },
        },
      })),
      { ordered: false },
    );
    if (matchedCount < existing.length) throw new LedgerConflict();
  }
}

async function findApplied<T extends AccountSums>(
  collection: Collection<T>,
  ids: readonly string[],
): Promise<Map<string, StreamId>> {
  const filter = { _id: { $in: [...ids] } } as mongoose.mongo.Filter<T>;
  const found = await collection.find(filter).project<AccountSums>({ appliedMs: 1, appliedSeq: 1 }).toArray();
  return new Map(
    found.map((document) => [document._id, { ms: document.appliedMs, seq: document.appliedSeq }]),
  );
}

/** Converts an entry to its ledger document. `_id` is first, as MongoDB stores it. Pure. */
export function toLedgerDocument(entry: LedgerEntry): LedgerDocument {
  const { ordinal, streamId } = entry;
  if (entry.kind === 'refill') {
    return {
      _id: entry.event.refillId,
      kind: 'refill',
      ordinal,
      streamMs: streamId.ms,
      streamSeq: streamId.seq,
      accountId: entry.event.accountId,
      at: new Date(entry.event.at),
      amountNano: entry.amountNano,
      freeRequests: entry.freeRequests,
      shortfallNano: 0n,
      priceVersion: null,
      ...describeCredit(entry.event),
    };
  }
  return {
    _id: entry.event.requestId,
    kind: 'charge',
    ordinal,
    streamMs: streamId.ms,
    streamSeq: streamId.seq,
    accountId: entry.event.accountId,
    at: new Date(entry.event.at),
    amountNano: -entry.costNano,
    freeRequests: entry.free ? -1 : 0,
    shortfallNano: entry.shortfallNano,
    priceVersion: entry.event.priceVersion,
  };
}

/** Lists the fields instead of copying the rest of the event, which takes ten times as long. */
export function toRequestLog(entry: LedgerEntry & { kind: 'charge' }): RequestLogDocument {
  const { event } = entry;
  return {
    _id: event.requestId,
    accountId: event.accountId,
    model: event.model,
    durationMs: event.durationMs,
    success: event.success,
    responseCode: event.responseCode,
    errorCode: event.errorCode,
    details: event.details,
    userIp: event.userIp,
    promptTokens: event.promptTokens,
    cacheReadTokens: event.cacheReadTokens,
    cacheWriteTokens: event.cacheWriteTokens,
    completionTokens: event.completionTokens,
    counted: event.counted,
    images: event.images,
    imageQuality: event.imageQuality,
    imageSize: event.imageSize,
    characters: event.characters,
    billedMs: event.billedMs,
    priceVersion: event.priceVersion,
    user: event.user,
    ...(event.lines !== undefined && { lines: event.lines }),
    at: new Date(event.at),
    settledAt: new Date(entry.streamId.ms),
    ordinal: entry.ordinal,
    costNano: entry.totalNano ?? entry.costNano,
    shortfallNano: entry.shortfallNano,
    free: entry.free,
  };
}

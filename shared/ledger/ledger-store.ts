import type { RequestOutcomeName } from '../contract/request-terms.ts';
import { insertMissing } from '../platform/storage/insert-missing.ts';
import type { Collection, Database } from '../platform/storage/mongo-client.ts';
import { addToSums, findApplied, type SumsChange, type SumsDocument } from './add-to-sums.ts';
import { IntentStore } from './intent-store.ts';
import {
  AccountSumsStore,
  sumRows,
  type AccountSumsChange,
  type AppliedAccount,
} from './account-sums-store.ts';
import { LedgerConflict } from './ledger-conflict.ts';
import { describeCredit, type RefillLogDocument, type RequestedCredit } from './refill-rows.ts';
import { RejectionStore } from './rejection-store.ts';
import { createRequestLogIndexes } from './request-log-indexes-store.ts';
import {
  SpendStore,
  type AccountSpendDocument,
  type ModelSpendDocument,
  type UpstreamSpendDocument,
} from './spend-store.ts';
import { spendSums } from './sum-spend.ts';
import {
  firstStreamId,
  isAfter,
  nameDayOf,
  type LedgerEntry,
  type StreamId,
  type UsageEvent,
} from './usage-event.ts';

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
  /** The day (`YYYY-MM-DD`, in UTC) to which budgets count a charge; absent if it is that of `at`. */
  readonly day?: string;
}

/**
 * One row of the request log; kept for `LOG_RETENTION_DAYS`. `_id` is the request's id. Customers never see its calls and
 * its vendor cost. Rows of release 0.1 have neither.
 */
export interface RequestLogDocument extends Omit<
  UsageEvent,
  'v' | 'requestId' | 'at' | 'failedLines' | 'vendorCostNano'
> {
  readonly _id: string;
  /** The upstream that was called last, for the index; absent if none was, and in rows of earlier releases. */
  readonly upstream?: string;
  /** When the request was admitted. */
  readonly at: Date;
  /** When the request was settled. Rows expire at a fixed time after this, in the order of their ordinals. */
  readonly settledAt: Date;
  /** Numbers the account's rows from 1, without gaps, in the order of settlement. */
  readonly ordinal: number;
  readonly costNano: bigint;
  /** What the vendors charge the operator; absent if that is unknown. */
  readonly vendorCostNano?: bigint;
  readonly shortfallNano: bigint;
  readonly free: boolean;
  /** Of requests that were rejected before a model was called. They have a collection of their own, and no number. */
  readonly isRejected?: true;
}

export function outcomeOf({ success, isRejected }: RequestLogDocument): RequestOutcomeName {
  if (isRejected === true) return 'rejected';
  return success ? 'success' : 'error';
}

/** The sums of one day of an account; `_id` is `account:YYYY-MM-DD`, the day in UTC. */
export interface DailyStatDocument extends SumsDocument {
  readonly accountId: string;
  readonly day: string;
  readonly requests: number;
  readonly promptTokens: number;
  readonly cacheReadTokens: number;
  readonly completionTokens: number;
  readonly costNano: bigint;
  readonly freeRequests: number;
}

/** Sums over some of an account's entries. */
export interface LedgerSums {
  readonly amountNano: bigint;
  /** From refills that added money. */
  readonly addedNano: bigint;
  /** Taken back by operators. */
  readonly takenNano: bigint;
  readonly freeRequests: number;
  /** Those with a row in the request log. */
  readonly charges: number;
  readonly entries: number;
}

const statSums = [
  'requests',
  'promptTokens',
  'cacheReadTokens',
  'completionTokens',
  'costNano',
  'freeRequests',
] as const;

interface Checkpoint {
  readonly _id: string;
  readonly ms: number;
  readonly seq: number;
}

/** Default of `LOG_RETENTION_DAYS`. */
const defaultRequestLogDays = 30;

export interface LedgerOptions {
  /** For how many days rows of the request log are kept. */
  readonly requestLogDays?: number;
}

/** The ledger in MongoDB. Writes are idempotent by id, or conditional on the last entry applied before. */
export class LedgerStore {
  readonly #db: Database;
  readonly requestLogDays: number;
  readonly entries: Collection<LedgerDocument>;
  readonly logs: Collection<RequestLogDocument>;
  readonly rejections: RejectionStore;
  readonly refillLogs: Collection<RefillLogDocument>;
  readonly stats: Collection<DailyStatDocument>;
  readonly spend: SpendStore;
  readonly intents: IntentStore;
  readonly #accounts: AccountSumsStore;
  readonly #checkpoints: Collection<Checkpoint>;

  constructor(db: Database, { requestLogDays = defaultRequestLogDays }: LedgerOptions = {}) {
    this.#db = db;
    this.requestLogDays = requestLogDays;
    this.entries = db.collection('ledger');
    this.logs = db.collection('request_logs');
    this.rejections = new RejectionStore(db);
    this.refillLogs = db.collection('refill_logs');
    this.stats = db.collection('daily_stats');
    this.spend = new SpendStore(db);
    this.intents = new IntentStore(db);
    this.#accounts = new AccountSumsStore(db);
    this.#checkpoints = db.collection('ledger_checkpoints');
  }

  /** Also sets for how long rows of the request log are kept. */
  async createIndexes(): Promise<void> {
    await this.entries.createIndex({ accountId: 1, streamMs: 1, streamSeq: 1 });
    await createRequestLogIndexes(this.#db, this.logs, this.requestLogDays);
    await this.rejections.createIndexes();
    await this.refillLogs.createIndex({ accountId: 1, ordinal: -1 });
    await this.stats.createIndex({ accountId: 1, day: 1 });
    await this.spend.createIndexes();
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
    const sums = { amountNano: 0n, addedNano: 0n, takenNano: 0n, freeRequests: 0, charges: 0, entries: 0 };
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
      else sums.takenNano -= amountNano;
    }
    return sums;
  }

  /** Counts the entries of an account, at most `limit`. */
  async countEntries(accountId: string, limit: number): Promise<number> {
    return await this.entries.countDocuments({ accountId }, { limit, maxTimeMS: 5_000 });
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

  async findAppliedPositions(ids: readonly string[]): Promise<Map<string, AppliedAccount>> {
    return await this.#accounts.findApplied(ids);
  }

  async findAccountSpendApplied(ids: readonly string[]): Promise<Map<string, StreamId>> {
    return await findApplied(this.spend.ofAccounts, ids);
  }

  async findModelSpendApplied(ids: readonly string[]): Promise<Map<string, StreamId>> {
    return await findApplied(this.spend.ofModels, ids);
  }

  async findUpstreamSpendApplied(ids: readonly string[]): Promise<Map<string, StreamId>> {
    return await findApplied(this.spend.ofUpstreams, ids);
  }

  async findStatsApplied(ids: readonly string[]): Promise<Map<string, StreamId>> {
    return await findApplied(this.stats, ids);
  }

  /** Adds sums to accounts. @throws LedgerConflict if any account was not changed */
  async addToAccounts(changes: readonly AccountSumsChange[]): Promise<void> {
    await this.#accounts.add(changes);
  }

  /** Adds rows already in MongoDB to their account. @throws LedgerConflict as `addToAccounts` does */
  async addRows(id: string, from: AppliedAccount, rows: readonly LedgerDocument[]): Promise<void> {
    await this.addToAccounts([sumRows(id, from, rows)]);
  }

  /**
   * Adds sums to daily stats. Changes a day only if nothing has been applied to it since `from` was read.
   * @throws LedgerConflict if any day was not changed
   */
  async addToStats(changes: readonly SumsChange<DailyStatDocument>[]): Promise<void> {
    if (!(await addToSums(this.stats, statSums, changes))) throw new LedgerConflict();
  }

  /** As `addToStats`. */
  async addToAccountSpend(changes: readonly SumsChange<AccountSpendDocument>[]): Promise<void> {
    if (!(await addToSums(this.spend.ofAccounts, spendSums, changes))) throw new LedgerConflict();
  }

  /** As `addToStats`. */
  async addToModelSpend(changes: readonly SumsChange<ModelSpendDocument>[]): Promise<void> {
    if (!(await addToSums(this.spend.ofModels, spendSums, changes))) throw new LedgerConflict();
  }

  /** As `addToStats`. */
  async addToUpstreamSpend(changes: readonly SumsChange<UpstreamSpendDocument>[]): Promise<void> {
    if (!(await addToSums(this.spend.ofUpstreams, spendSums, changes))) throw new LedgerConflict();
  }
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
  const at = new Date(entry.event.at);
  return {
    _id: entry.event.requestId,
    kind: 'charge',
    ordinal,
    streamMs: streamId.ms,
    streamSeq: streamId.seq,
    accountId: entry.event.accountId,
    at,
    amountNano: -entry.costNano,
    freeRequests: entry.free ? -1 : 0,
    shortfallNano: entry.shortfallNano,
    priceVersion: entry.event.priceVersion,
    ...(entry.day !== nameDayOf(at) && { day: entry.day }),
  };
}

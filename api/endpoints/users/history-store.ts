// decisions 0012, 0015
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { callMongo } from '../../../shared/platform/storage/mongo-client.ts';
import type { DailyStatDocument, LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { toRefillLog, type RefillLogDocument } from '../../../shared/ledger/refill-rows.ts';
import { countOrdinals, findPage } from './ordinal-page.ts';
import { findRecentRefills } from './recent-refills-script.ts';

export interface HistoryPage<T> {
  /** Rows on all pages. */
  readonly totalCount: number;
  /** Newest first. */
  readonly rows: readonly T[];
}

/** The sums of a day, or of a day and a model. */
export type DayStat = Omit<DailyStatDocument, '_id' | 'accountId' | 'appliedMs' | 'appliedSeq'> & {
  readonly model?: string;
};

const maxReads = 3;
/** MongoDB aborts a read that takes longer and frees its slot. Every read here returns few rows and uses an index. */
const limits = { maxTimeMS: 5_000 };

/** A batch holds 101 rows by default, and the next one takes another round trip. */
const inOneRoundTrip = (rows: number) => ({ ...limits, limit: rows, batchSize: rows + 1 });

/**
 * The refills and the days of an account, for its owner. Refills are paged by their ordinals, so the last page of a
 * million rows takes no longer than the first: no rows are counted or skipped.
 */
export class HistoryStore {
  readonly #ledger: LedgerStore;
  readonly #redis: RedisClient;

  constructor(ledger: LedgerStore, redis: RedisClient) {
    this.#ledger = ledger;
    this.#redis = redis;
  }

  /**
   * Refills. Recent ones that have not reached MongoDB yet are read from Redis.
   * @param refills how many rows the account's log has so far, as Redis counts them
   */
  async readRefillLog(
    { id: accountId, refills }: { readonly id: string; readonly refills: number },
    page: number,
    pageSize: number,
    signal?: AbortSignal,
  ): Promise<HistoryPage<RefillLogDocument>> {
    const { refillLogs } = this.#ledger;
    const { newestStored, pending } = await this.#findNewestRefills(accountId, refills);
    signal?.throwIfAborted();
    const newest = Math.max(newestStored, ...pending.map((row) => row.ordinal));
    const span = newest === 0 ? null : { newest, oldest: 1 };
    const pageSpan = findPage(span, page, pageSize);
    if (pageSpan === null) return { totalCount: countOrdinals(span), rows: [] };
    const within = { accountId, ordinal: { $gte: pageSpan.oldest, $lte: pageSpan.newest } };
    const rows = await callMongo(() => refillLogs.find(within, inOneRoundTrip(pageSize)).toArray());
    // Some may have reached MongoDB since they were found in Redis.
    const known = new Set(rows.map((row) => row.ordinal));
    const isMissing = ({ ordinal }: RefillLogDocument): boolean =>
      ordinal >= pageSpan.oldest && ordinal <= pageSpan.newest && !known.has(ordinal);
    rows.push(...pending.filter(isMissing));
    rows.sort((a, b) => b.ordinal - a.ordinal);
    return { totalCount: countOrdinals(span), rows };
  }

  /** The ordinal of the newest refill in MongoDB (0 if none), and the later ones that are not there yet. */
  async #findNewestRefills(
    accountId: string,
    total: number,
  ): Promise<{ readonly newestStored: number; readonly pending: readonly RefillLogDocument[] }> {
    let newestStored = await this.#findNewestRefill(accountId);
    for (let attempt = 1; ; attempt += 1) {
      if (newestStored >= total) return { newestStored, pending: [] };
      const refills = await findRecentRefills(this.#redis, accountId, newestStored);
      const isComplete = refills.length >= total - newestStored || attempt === maxReads;
      // A refill found in neither store reached MongoDB between the two reads and is there by now, unless it is lost or
      // Redis was not scanned that far.
      const newestStoredNow = isComplete ? newestStored : await this.#findNewestRefill(accountId);
      if (newestStoredNow === newestStored)
        return { newestStored, pending: refills.flatMap((refill) => toRefillLog(refill) ?? []) };
      newestStored = newestStoredNow;
    }
  }

  async #findNewestRefill(accountId: string): Promise<number> {
    const newestFirst = { ...limits, sort: { ordinal: -1 }, projection: { ordinal: 1 } } as const;
    const newest = await callMongo(() => this.#ledger.refillLogs.findOne({ accountId }, newestFirst));
    return newest?.ordinal ?? 0;
  }

  /** The days with requests from the first to the last day, oldest first; days as YYYY-MM-DD, in UTC. */
  async readDays(accountId: string, firstDay: string, lastDay: string): Promise<DayStat[]> {
    const days = await callMongo(() =>
      this.#ledger.stats
        .find({ accountId, day: { $gte: firstDay, $lte: lastDay } }, limits)
        .sort({ day: 1 })
        .toArray(),
    );
    return days.map((day) => ({
      ...day,
      requests: toNumber(day.requests),
      promptTokens: toNumber(day.promptTokens),
      cacheReadTokens: toNumber(day.cacheReadTokens),
      completionTokens: toNumber(day.completionTokens),
      freeRequests: toNumber(day.freeRequests),
    }));
  }

  /** The same days, by model. */
  async readModelDays(accountId: string, firstDay: string, lastDay: string): Promise<DayStat[]> {
    const days: DayStat[] = [];
    const filter = { accountId, since: firstDay, until: lastDay };
    for await (const { day, model, ...sums } of this.#ledger.spend.read(filter, byModelAndDay))
      if (sums.requests > 0) days.push({ ...sums, day: day!, model: model! });
    return days;
  }
}

const byModelAndDay = new Set(['model', 'day'] as const);

/** Incrementing past 32 bits turns a count into an int64 in MongoDB, which is read as a bigint. */
function toNumber(count: number | bigint): number {
  return Number(count);
}

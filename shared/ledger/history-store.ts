import { callMongo } from '../storage/mongo-client.ts';
import {
  logLifetimeSeconds,
  type DailyStatDocument,
  type LedgerStore,
  type RefillLogDocument,
  type RequestLogDocument,
} from './ledger-store.ts';
import { countOrdinals, findPage } from './ordinal-page.ts';

export interface HistoryPage<T> {
  /** Rows on all pages. */
  readonly totalCount: number;
  /** Newest first. */
  readonly rows: readonly T[];
}

/**
 * What an account's holder may read of the ledger. Rows are paged by their ordinals, so that the last page of a
 * million rows costs what the first does: nothing is counted, and nothing is skipped over.
 */
export class HistoryStore {
  readonly #ledger: LedgerStore;

  constructor(ledger: LedgerStore) {
    this.#ledger = ledger;
  }

  /** Requests settled within the log's lifetime, to the millisecond: MongoDB removes expired rows up to a minute late. */
  async readRequestLog(
    accountId: string,
    page: number,
    pageSize: number,
  ): Promise<HistoryPage<RequestLogDocument>> {
    const { logs } = this.#ledger;
    const live = { accountId, settledAt: { $gt: new Date(Date.now() - logLifetimeSeconds * 1_000) } };
    return await callMongo(async () => {
      const [newest, oldest] = await Promise.all([
        logs.findOne(live, { sort: { ordinal: -1 }, projection: { ordinal: 1 } }),
        logs.findOne(live, { sort: { ordinal: 1 }, projection: { ordinal: 1 } }),
      ]);
      const span =
        newest === null || oldest === null ? null : { newest: newest.ordinal, oldest: oldest.ordinal };
      const wanted = findPage(span, page, pageSize);
      const rows =
        wanted === null
          ? []
          : await logs.find({ accountId, ordinal: { $gte: wanted.oldest, $lte: wanted.newest } }).toArray();
      // Rows are numbered as they are settled, and read as they were asked for.
      rows.sort((a, b) => b.at.getTime() - a.at.getTime() || b.ordinal - a.ordinal);
      return { totalCount: countOrdinals(span), rows };
    });
  }

  async readRefillLog(
    accountId: string,
    page: number,
    pageSize: number,
  ): Promise<HistoryPage<RefillLogDocument>> {
    const { refillLogs } = this.#ledger;
    return await callMongo(async () => {
      const newest = await refillLogs.findOne(
        { accountId },
        { sort: { ordinal: -1 }, projection: { ordinal: 1 } },
      );
      const span = newest === null ? null : { newest: newest.ordinal, oldest: 1 };
      const wanted = findPage(span, page, pageSize);
      const rows =
        wanted === null
          ? []
          : await refillLogs
              .find({ accountId, ordinal: { $gte: wanted.oldest, $lte: wanted.newest } })
              .sort({ ordinal: -1 })
              .toArray();
      return { totalCount: countOrdinals(span), rows };
    });
  }

  /** The days with requests among these and those between, oldest first; days as YYYY-MM-DD, in UTC. */
  async readDays(accountId: string, firstDay: string, lastDay: string): Promise<DailyStatDocument[]> {
    const days = await callMongo(() =>
      this.#ledger.stats
        .find({ accountId, day: { $gte: firstDay, $lte: lastDay } })
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
}

/** A count that outgrew 32 bits as it was added to is an int64 in MongoDB, which is read as a bigint. */
function toNumber(count: number | bigint): number {
  return Number(count);
}

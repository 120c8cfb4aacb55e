// decision 0015
import { callMongo } from '../../../shared/platform/storage/mongo-client.ts';
import type { DailyStatDocument, LedgerStore } from '../../../shared/ledger/ledger-store.ts';

/** The sums of a day, or of a day and a model. */
export type DayStat = Omit<DailyStatDocument, '_id' | 'accountId' | 'appliedMs' | 'appliedSeq'> & {
  readonly model?: string;
};

/** MongoDB aborts a read that takes longer and frees its slot. Every read here returns few rows and uses an index. */
const limits = { maxTimeMS: 5_000 };

/** The days of an account, for its owner. */
export class HistoryStore {
  readonly #ledger: LedgerStore;

  constructor(ledger: LedgerStore) {
    this.#ledger = ledger;
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

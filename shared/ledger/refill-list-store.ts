// decision 0012
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { callMongo } from '../platform/storage/mongo-client.ts';
import type { LedgerStore } from './ledger-store.ts';
import { countOrdinals, findPage, type OrdinalSpan } from './ordinal-page.ts';
import { findRecentRefills } from './recent-refills-script.ts';
import { toRefillLog, type RefillLogDocument } from './refill-rows.ts';

/** Whose refills to read. */
export interface RefilledAccount {
  readonly id: string;
  /** How many rows the account's log has so far, as Redis counts them. */
  readonly refills: number;
}

export interface RefillPage {
  /** Rows on all pages. */
  readonly totalCount: number;
  /** Newest first. */
  readonly rows: readonly RefillLogDocument[];
}

interface NewestRefills {
  /** The ordinal of the newest refill in MongoDB; 0 if there is none. */
  readonly newestStored: number;
  /** The later ones that are not there yet. */
  readonly pending: readonly RefillLogDocument[];
}

const maxReads = 3;
/** MongoDB aborts a read that takes longer and frees its slot. Every read here returns few rows and uses an index. */
const limits = { maxTimeMS: 5_000 };

/** A batch holds 101 rows by default, and the next one takes another round trip. */
const inOneRoundTrip = (rows: number) => ({ ...limits, limit: rows, batchSize: rows + 1 });

/**
 * The refills of an account. They are paged by their ordinals, so the last page of a million rows takes no longer than the
 * first: no rows are counted or skipped. Recent ones that have not reached MongoDB yet are read from Redis.
 */
export class RefillListStore {
  readonly #ledger: LedgerStore;
  readonly #redis: RedisClient;

  constructor(ledger: LedgerStore, redis: RedisClient) {
    this.#ledger = ledger;
    this.#redis = redis;
  }

  /** Reads a page by its number, from 1. */
  async readPage(
    account: RefilledAccount,
    page: number,
    pageSize: number,
    signal?: AbortSignal,
  ): Promise<RefillPage> {
    const newest = await this.#findNewestRefills(account);
    signal?.throwIfAborted();
    const span = spanOf(newest);
    const pageSpan = findPage(span, page, pageSize);
    const rows = pageSpan === null ? [] : await this.#readSpan(account.id, pageSpan, newest);
    return { totalCount: countOrdinals(span), rows };
  }

  /**
   * Reads so many of the refills before the one with this ordinal, newest first; the newest ones for null. There are fewer
   * only if there are no more: a missing ordinal is none of them.
   */
  async readBefore(
    account: RefilledAccount,
    before: number | null,
    limit: number,
  ): Promise<readonly RefillLogDocument[]> {
    const found = await this.#findNewestRefills(account);
    const newest = Math.min(spanOf(found)?.newest ?? 0, before === null ? Infinity : before - 1);
    if (newest < 1) return [];
    const rows = await this.#readSpan(account.id, { newest, oldest: 1 }, found, limit);
    return rows.slice(0, limit);
  }

  async #readSpan(
    accountId: string,
    { oldest, newest }: OrdinalSpan,
    { pending }: NewestRefills,
    limit = newest - oldest + 1,
  ): Promise<RefillLogDocument[]> {
    const within = { accountId, ordinal: { $gte: oldest, $lte: newest } };
    const { refillLogs } = this.#ledger;
    const rows = await callMongo(() =>
      refillLogs.find(within, { ...inOneRoundTrip(limit), sort: { ordinal: -1 } }).toArray(),
    );
    // Some may have reached MongoDB since they were found in Redis.
    const known = new Set(rows.map((row) => row.ordinal));
    const isMissing = ({ ordinal }: RefillLogDocument): boolean =>
      ordinal >= oldest && ordinal <= newest && !known.has(ordinal);
    rows.push(...pending.filter(isMissing));
    return rows.sort((a, b) => b.ordinal - a.ordinal);
  }

  async #findNewestRefills({ id: accountId, refills: total }: RefilledAccount): Promise<NewestRefills> {
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
}

function spanOf({ newestStored, pending }: NewestRefills): OrdinalSpan | null {
  const newest = Math.max(newestStored, ...pending.map((row) => row.ordinal));
  return newest === 0 ? null : { newest, oldest: 1 };
}

// decisions 0015, 0100
import type { RequestOutcomeName } from '../contract/request-terms.ts';
import { addDays, startOfDay, toDay } from './days.ts';
import { outcomeOf, type LedgerStore, type RequestLogDocument } from './ledger-store.ts';
import { logLifetimeSeconds } from './request-log-indexes-store.ts';
import type { PricedRow, PriceStore } from './price-store.ts';
import { maxCounted, RequestListStore, type RequestFilter, type RowSums } from './request-list-store.ts';
import type { RunRead } from './spend-store.ts';
import { nextReadTurn } from '../fairness/work-turns.ts';
import { callMongo, type FindCursor } from '../platform/storage/mongo-client.ts';
import { countOrdinals, findPage, type OrdinalSpan } from './ordinal-page.ts';

/** Which of its requests an account's owner asks for. */
export interface RequestLogFilter {
  readonly model?: string | undefined;
  readonly outcome?: RequestOutcomeName | undefined;
  /** Of the admission; included. */
  readonly since?: Date | undefined;
  /** Of the admission; not included. */
  readonly until?: Date | undefined;
  readonly requestId?: string | undefined;
}

export type RequestTotals = Omit<RowSums, 'rows'>;

export interface RequestLogPage {
  /** Rows on all pages. */
  readonly totalCount: number;
  /** Newest first. */
  readonly rows: readonly PricedRow[];
  readonly totals: RequestTotals;
  /** False if the totals are those of the newest 10 000 requests, and there are more. */
  readonly isExact: boolean;
}

/** Whose requests to read, and until when. */
export interface LogReader {
  readonly accountId: string;
  readonly signal?: AbortSignal | undefined;
}

interface Summed {
  readonly totals: RequestTotals;
  readonly isExact: boolean;
  /** Rows, at most 10 000. */
  readonly counted: number;
}

/** The driver takes about a millisecond to decode this many rows. */
const rowsPerTurn = 50;
/** MongoDB aborts a read that takes longer and frees its slot. Every read here uses an index. */
const limits = { maxTimeMS: 5_000 };

/**
 * The request log as an account's owner may read it: 72 hours. Without a filter, rows are paged by their ordinals, so the
 * last page of a million rows takes no longer than the first. With a filter, the newest 10 000 are.
 */
export class RequestLogStore {
  readonly #ledger: LedgerStore;
  readonly #prices: PriceStore;
  readonly #list: RequestListStore;
  readonly #now: () => Date;

  constructor(ledger: LedgerStore, prices: PriceStore, now = () => new Date()) {
    this.#ledger = ledger;
    this.#prices = prices;
    this.#list = new RequestListStore(ledger, now);
    this.#now = now;
  }

  async readPage(
    reader: LogReader,
    filter: RequestLogFilter,
    page: number,
    pageSize: number,
  ): Promise<RequestLogPage> {
    if (filter.requestId !== undefined) return await this.#readOne(reader, filter, page);
    const selected = this.#select(reader, filter);
    const isFiltered = Object.values(filter).some((value) => value !== undefined);
    const { totals, isExact, counted } = await this.#sum(selected);
    reader.signal?.throwIfAborted();
    const { totalCount, rows } = isFiltered
      ? await this.#readSelected(reader, selected, counted, page, pageSize)
      : await this.#readNumbered(reader, page, pageSize);
    return { totalCount, rows: await this.#prices.addTo(rows), totals, isExact };
  }

  /** Counts the requests that a filter selects, up to a maximum. */
  async count({ accountId }: LogReader, filter: RequestLogFilter, max: number): Promise<number> {
    if (filter.requestId !== undefined) return 1;
    return await this.#list.countRows(this.#select({ accountId }, filter), max);
  }

  /**
   * Yields all requests that a filter selects, newest first, a page at a time.
   * @param runRead runs the read of a page, such as in a turn of the caller
   */
  async *readPages(
    reader: LogReader,
    filter: RequestLogFilter,
    pageSize: number,
    runRead: RunRead,
  ): AsyncGenerator<readonly PricedRow[]> {
    if (filter.requestId !== undefined) {
      yield (await runRead(() => this.#readOne(reader, filter, 1))).rows;
      return;
    }
    const selected = this.#select(reader, filter);
    for await (const rows of this.#list.listPages(selected, pageSize, runRead))
      yield await runRead(() => this.#prices.addTo(rows));
  }

  /** The first moment that customers see. */
  get #start(): Date {
    return new Date(this.#now().getTime() - logLifetimeSeconds * 1_000);
  }

  #select({ accountId }: LogReader, { model, outcome, since, until }: RequestLogFilter): SelectedRequests {
    const start = this.#start;
    return { accountId, model, outcome, since: since === undefined || since < start ? start : since, until };
  }

  async #readOne({ accountId }: LogReader, filter: RequestLogFilter, page: number): Promise<RequestLogPage> {
    const { requestId, model, outcome, since, until } = filter;
    const row = await this.#list.findRow({ _id: requestId!, accountId });
    const isSelected =
      row !== null &&
      row.settledAt > this.#start &&
      (model === undefined || row.model === model) &&
      (outcome === undefined || outcomeOf(row) === outcome) &&
      (since === undefined || row.at >= since) &&
      (until === undefined || row.at < until);
    const rows = isSelected ? [row] : [];
    const priced = page === 1 ? await this.#prices.addTo(rows) : [];
    return {
      totalCount: rows.length,
      rows: priced,
      totals: rows.map(toTotals).reduce(addTotals, noTotals),
      isExact: true,
    };
  }

  /** Numbers are given in the order of settlement, so the first and the last one are found by an index of the time. */
  async #readNumbered(reader: LogReader, page: number, pageSize: number): Promise<FoundRows> {
    const { accountId, signal } = reader;
    const { logs } = this.#ledger;
    const live = { accountId, settledAt: { $gt: this.#start } };
    return await callMongo(async () => {
      const [newest, oldest] = await Promise.all([
        logs.findOne(live, { ...limits, sort: { settledAt: -1, ordinal: -1 }, projection: { ordinal: 1 } }),
        logs.findOne(live, { ...limits, sort: { settledAt: 1, ordinal: 1 }, projection: { ordinal: 1 } }),
      ]);
      signal?.throwIfAborted();
      const span: OrdinalSpan | null =
        newest === null || oldest === null ? null : { newest: newest.ordinal, oldest: oldest.ordinal };
      const pageSpan = findPage(span, page, pageSize);
      const totalCount = countOrdinals(span);
      if (pageSpan === null) return { totalCount, rows: [] };
      const within = { accountId, ordinal: { $gte: pageSpan.oldest, $lte: pageSpan.newest } };
      const rows = await readAll(logs.find(within, inOneRoundTrip(pageSize)), reader);
      // Rows are numbered in the order of settlement, but shown by request time.
      rows.sort((a, b) => b.at.getTime() - a.at.getTime() || b.ordinal - a.ordinal);
      return { totalCount, rows };
    });
  }

  async #readSelected(
    reader: LogReader,
    selected: RequestFilter,
    totalCount: number,
    page: number,
    pageSize: number,
  ): Promise<FoundRows> {
    const skip = (page - 1) * pageSize;
    const limit = Math.min(pageSize, totalCount - skip);
    if (limit <= 0) return { totalCount, rows: [] };
    const cursor = this.#list.findPage(selected, skip, limit);
    return { totalCount, rows: await callMongo(() => readAll(cursor, reader)) };
  }

  /**
   * Sums requests. If there are too many of them, the sums of whole days come from the daily sums, which know no outcome,
   * and only the rest is read.
   */
  async #sum(selected: SelectedRequests): Promise<Summed> {
    const sums = await this.#list.sumRows(selected, maxCounted + 1);
    if (sums.rows <= maxCounted) return { totals: sums, isExact: true, counted: sums.rows };
    const exact = selected.outcome === undefined ? await this.#sumWithDays(selected) : null;
    const totals = exact ?? (await this.#list.sumRows(selected, maxCounted));
    return { totals, isExact: exact !== null, counted: maxCounted };
  }

  /** Returns null if there is no whole day, or too much beside the whole days. */
  async #sumWithDays(selected: SelectedRequests): Promise<RequestTotals | null> {
    const { since, until, accountId, model } = selected;
    const firstDay = startOfDay(toDay(since)) < since ? addDays(toDay(since), 1) : toDay(since);
    const endDay = until === undefined || until > this.#now() ? null : toDay(until);
    if (endDay !== null && endDay <= firstDay) return null;
    const rests: RequestFilter[] = [
      { ...selected, until: startOfDay(firstDay) },
      ...(endDay === null ? [] : [{ ...selected, since: startOfDay(endDay) }]),
    ];
    const sums = await Promise.all(rests.map((rest) => this.#list.sumRows(rest, maxCounted + 1)));
    if (sums.some(({ rows }) => rows > maxCounted)) return null;
    const lastDay = endDay === null ? toDay(this.#now()) : addDays(endDay, -1);
    const days = await this.#ledger.spend.sum({ accountId, model, since: firstDay, until: lastDay });
    return [...sums, ...(days === null ? [] : [days])].reduce(addTotals, noTotals);
  }
}

type SelectedRequests = RequestFilter & { readonly since: Date };

interface FoundRows {
  readonly totalCount: number;
  readonly rows: readonly RequestLogDocument[];
}

/** Reads all rows, a few in each of the account's turns on the event loop. Throws once the signal is aborted. */
async function readAll<T>(cursor: FindCursor<T>, { accountId, signal }: LogReader): Promise<T[]> {
  const rows: T[] = [];
  try {
    while (await cursor.hasNext()) {
      rows.push(...cursor.readBufferedDocuments(rowsPerTurn));
      await nextReadTurn(accountId);
      signal?.throwIfAborted();
    }
    return rows;
  } finally {
    await cursor.close();
  }
}

/** A batch holds 101 rows by default, and the next one takes another round trip. */
const inOneRoundTrip = (rows: number) => ({ ...limits, limit: rows, batchSize: rows + 1 });

const noTotals: RequestTotals = { requests: 0, promptTokens: 0, completionTokens: 0, costNano: 0n };

const addTotals = (one: RequestTotals, other: RequestTotals): RequestTotals => ({
  requests: one.requests + other.requests,
  promptTokens: one.promptTokens + other.promptTokens,
  completionTokens: one.completionTokens + other.completionTokens,
  costNano: one.costNano + other.costNano,
});

const toTotals = ({
  lines,
  promptTokens,
  completionTokens,
  costNano,
}: RequestLogDocument): RequestTotals => ({
  requests: lines ?? 1,
  promptTokens,
  completionTokens,
  costNano,
});

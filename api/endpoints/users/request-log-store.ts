// decisions 0015, 0100
import type { RequestOutcomeName } from '../../../shared/contract/admin-requests.ts';
import { addDays, startOfDay, toDay } from '../../../shared/ledger/days.ts';
import {
  logLifetimeSeconds,
  type LedgerStore,
  type RequestLogDocument,
} from '../../../shared/ledger/ledger-store.ts';
import type { PriceStore } from '../../../shared/ledger/price-store.ts';
import {
  maxCounted,
  RequestListStore,
  type RequestFilter,
  type RequestKey,
} from '../../../shared/ledger/request-list-store.ts';
import type { RunRead } from '../../../shared/ledger/spend-store.ts';
import { callMongo } from '../../../shared/platform/storage/mongo-client.ts';
import type { Pricing } from '../../../shared/contract/models.ts';
import { countOrdinals, findPage, type OrdinalSpan } from './ordinal-page.ts';
import { readAll } from './read-all.ts';

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

/** A row with the prices that its request was charged by; null if they are not stored. */
export interface PricedRow {
  readonly row: RequestLogDocument;
  readonly pricing: Pricing | null;
}

/** Sums over requests. Lines of batches count one by one. */
export interface RequestTotals {
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly costNano: bigint;
}

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
}

/** Keys are small. */
const keysPerTurn = 500;
/** MongoDB aborts a read that takes longer and frees its slot. Every read here uses an index. */
const limits = { maxTimeMS: 5_000 };

/**
 * The request log as an account's owner may read it: 72 hours. Without a filter, rows are paged by their ordinals, so the
 * last page of a million rows takes no longer than the first. With a filter, the newest 10 000 are found by their keys.
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
    const keys = await this.#readKeys(reader, selected);
    const { totals, isExact } = await this.#sum(reader, selected, keys);
    const { totalCount, rows } = isFiltered
      ? await this.#readSelected(reader, keys, page, pageSize)
      : await this.#readNumbered(reader, page, pageSize);
    return { totalCount, rows: await this.#addPrices(rows), totals, isExact };
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
    let after: string | undefined;
    for (;;) {
      const { rows, hasMore } = await runRead(async () => {
        const page = await this.#list.list(selected, pageSize, after);
        return { ...page, rows: await this.#addPrices(page.rows) };
      });
      yield rows;
      if (!hasMore) return;
      after = rows.at(-1)!.row._id;
    }
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
    const row = await callMongo(() => this.#ledger.logs.findOne({ _id: requestId!, accountId }, limits));
    const isSelected =
      row !== null &&
      row.settledAt > this.#start &&
      (model === undefined || row.model === model) &&
      (outcome === undefined || row.success === (outcome === 'success')) &&
      (since === undefined || row.at >= since) &&
      (until === undefined || row.at < until);
    const rows = isSelected ? [row] : [];
    const priced = page === 1 ? await this.#addPrices(rows) : [];
    return { totalCount: rows.length, rows: priced, totals: sumKeys(rows), isExact: true };
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
      const rows = await readAll(logs.find(within, inOneRoundTrip(pageSize)), accountId, signal);
      // Rows are numbered in the order of settlement, but shown by request time.
      rows.sort((a, b) => b.at.getTime() - a.at.getTime() || b.ordinal - a.ordinal);
      return { totalCount, rows };
    });
  }

  /** Reads the page of these requests. */
  async #readSelected(
    { accountId, signal }: LogReader,
    keys: readonly RequestKey[],
    page: number,
    pageSize: number,
  ): Promise<FoundRows> {
    const totalCount = Math.min(keys.length, maxCounted);
    const ids = keys
      .slice((page - 1) * pageSize, Math.min(page * pageSize, totalCount))
      .map(({ _id }) => _id);
    if (ids.length === 0) return { totalCount, rows: [] };
    const found = await callMongo(() =>
      readAll(this.#ledger.logs.find({ _id: { $in: ids } }, inOneRoundTrip(pageSize)), accountId, signal),
    );
    const byId = new Map(found.map((row) => [row._id, row]));
    return { totalCount, rows: ids.flatMap((id) => byId.get(id) ?? []) };
  }

  async #readKeys({ accountId, signal }: LogReader, selected: RequestFilter): Promise<RequestKey[]> {
    return await this.#list.readKeys(selected, (cursor) => readAll(cursor, accountId, signal, keysPerTurn));
  }

  /**
   * Sums requests. If there are too many of them, the sums of whole days come from the daily sums, which know no outcome,
   * and only the rest is read.
   */
  async #sum(reader: LogReader, selected: SelectedRequests, keys: readonly RequestKey[]): Promise<Summed> {
    if (keys.length <= maxCounted) return { totals: sumKeys(keys), isExact: true };
    const totals = selected.outcome === undefined ? await this.#sumWithDays(reader, selected) : null;
    return totals === null
      ? { totals: sumKeys(keys.slice(0, maxCounted)), isExact: false }
      : { totals, isExact: true };
  }

  /** Returns null if there is no whole day, or too much beside the whole days. */
  async #sumWithDays(reader: LogReader, selected: SelectedRequests): Promise<RequestTotals | null> {
    const { since, until, accountId, model } = selected;
    const firstDay = startOfDay(toDay(since)) < since ? addDays(toDay(since), 1) : toDay(since);
    const endDay = until === undefined || until > this.#now() ? null : toDay(until);
    if (endDay !== null && endDay <= firstDay) return null;
    const rests: RequestFilter[] = [
      { ...selected, until: startOfDay(firstDay) },
      ...(endDay === null ? [] : [{ ...selected, since: startOfDay(endDay) }]),
    ];
    let totals = sumKeys([]);
    for (const rest of rests) {
      const keys = await this.#readKeys(reader, rest);
      if (keys.length > maxCounted) return null;
      totals = addTotals(totals, sumKeys(keys));
    }
    const lastDay = endDay === null ? toDay(this.#now()) : addDays(endDay, -1);
    const days = await this.#ledger.spend.sum({ accountId, model, since: firstDay, until: lastDay });
    return days === null ? totals : addTotals(totals, days);
  }

  /** Looks up each price once. */
  async #addPrices(rows: readonly RequestLogDocument[]): Promise<PricedRow[]> {
    const keyOf = ({ model, priceVersion }: RequestLogDocument): string => `${model}:${priceVersion}`;
    const distinct = new Map(rows.map((row) => [keyOf(row), row]));
    const found = await callMongo(() =>
      Promise.all(
        Array.from(distinct, async ([key, { model, priceVersion }]) => {
          return [key, await this.#prices.find(model, priceVersion)] as const;
        }),
      ),
    );
    const prices = new Map(found);
    return rows.map((row) => ({ row, pricing: prices.get(keyOf(row)) ?? null }));
  }
}

type SelectedRequests = RequestFilter & { readonly since: Date };

interface FoundRows {
  readonly totalCount: number;
  readonly rows: readonly RequestLogDocument[];
}

/** A batch holds 101 rows by default, and the next one takes another round trip. */
const inOneRoundTrip = (rows: number) => ({ ...limits, limit: rows, batchSize: rows + 1 });

function sumKeys(keys: readonly RequestKey[]): RequestTotals {
  let [requests, promptTokens, completionTokens, costNano] = [0, 0, 0, 0n];
  for (const key of keys) {
    requests += key.lines ?? 1;
    promptTokens += key.promptTokens;
    completionTokens += key.completionTokens;
    costNano += key.costNano;
  }
  return { requests, promptTokens, completionTokens, costNano };
}

const addTotals = (one: RequestTotals, other: RequestTotals): RequestTotals => ({
  requests: one.requests + other.requests,
  promptTokens: one.promptTokens + other.promptTokens,
  completionTokens: one.completionTokens + other.completionTokens,
  costNano: one.costNano + other.costNano,
});

// decision 0097
import type mongoose from 'mongoose';
import type { RequestOutcomeName } from '../contract/request-terms.ts';
import { callMongo, type Collection, type FindCursor } from '../platform/storage/mongo-client.ts';
import { addDays, startOfDay, toDay } from './days.ts';
import { addressFields, type AddressedRow } from './sum-addresses.ts';
import type { RunRead } from './spend-store.ts';
import type { LedgerDocument, LedgerStore, RequestLogDocument } from './ledger-store.ts';

export interface RequestFilter {
  readonly accountId?: string | undefined;
  readonly model?: string | undefined;
  /** The one that was called last. Rows of earlier releases have none. */
  readonly upstream?: string | undefined;
  readonly outcome?: RequestOutcomeName | undefined;
  /** Of the admission; included. */
  readonly since?: Date | undefined;
  /** Of the admission; not included. */
  readonly until?: Date | undefined;
}

export interface RequestPage {
  /** Newest first. */
  readonly rows: readonly RequestLogDocument[];
  readonly hasMore: boolean;
}

/** How many requests a filter selects. */
export interface RequestCount {
  readonly count: number;
  /** False if there are more. */
  readonly isExact: boolean;
}

export type FoundRequest =
  | { readonly row: RequestLogDocument; readonly entry?: never }
  /** The row has been deleted. */
  | { readonly entry: LedgerDocument; readonly row?: never };

/** No request has the id that a page was to begin after, or its row has been deleted meanwhile. */
export class UnknownPosition extends Error {
  override readonly name = 'UnknownPosition';
}

/** More are not counted, and not summed. */
export const maxCounted = 10_000;

/** MongoDB aborts a read that takes longer. */
const limits = { maxTimeMS: 5_000 };

const dayMs = 24 * 60 * 60 * 1_000;

type Range = { readonly $gte: Date; readonly $lt?: Date };
type RowFilter = mongoose.mongo.Filter<RequestLogDocument>;
type Rows = Collection<RequestLogDocument>;

/** Sums over rows. */
export interface RowSums {
  readonly rows: number;
  /** Lines of batches count one by one. */
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly costNano: bigint;
}

const noRows: RowSums = { rows: 0, requests: 0, promptTokens: 0, completionTokens: 0, costNano: 0n };

/** The request log of all accounts. */
export class RequestListStore {
  readonly #ledger: LedgerStore;
  readonly #now: () => Date;

  constructor(ledger: LedgerStore, now = () => new Date()) {
    this.#ledger = ledger;
    this.#now = now;
  }

  /** Finds a request by its id: its row, or its ledger entry, which is kept for ever. Also one that was rejected. */
  async find(id: string): Promise<FoundRequest | null> {
    const row = await this.findRow({ _id: id });
    if (row !== null) return { row };
    const entry = await callMongo(() => this.#ledger.entries.findOne({ _id: id, kind: 'charge' }, limits));
    return entry === null ? null : { entry };
  }

  /** Finds the row of a request, also of one that was rejected. */
  async findRow(
    selected: Pick<RequestLogDocument, '_id'> & Partial<Pick<RequestLogDocument, 'accountId'>>,
  ): Promise<RequestLogDocument | null> {
    const { logs, rejections } = this.#ledger;
    return await callMongo(
      async () => (await logs.findOne(selected, limits)) ?? (await rejections.rows.findOne(selected, limits)),
    );
  }

  /**
   * Lists requests by the time of their admission, newest first. Successes and failures are read one after the other and
   * merged, because the indexes begin with the outcome. Failures are read only as far back as the page of successes goes.
   * @param after the last request of the page before, or its id
   * @throws UnknownPosition
   */
  async list(filter: RequestFilter, limit: number, after?: Position | string): Promise<RequestPage> {
    if (selectsNone(filter)) return { rows: [], hasMore: false };
    return await callMongo(async () => {
      const position = typeof after === 'string' ? await this.#findPosition(filter, after) : (after ?? null);
      const rows: RequestLogDocument[] = [];
      let range = this.#rangeOf(filter);
      for (const success of listOutcomes(filter)) {
        const fields = { ...fieldsOf(filter), success };
        const part = await this.#readPart(this.#rowsOf(filter), fields, range, position, limit + 1);
        rows.push(...part);
        if (part.length > limit) range = { ...range, $gte: part.at(-1)!.at };
      }
      rows.sort(compareRows);
      return { rows: rows.slice(0, limit), hasMore: rows.length > limit };
    });
  }

  /** Returns a cursor of a page of the requests that the filter selects, newest first. Skipped ones take their time. */
  findPage(filter: RequestFilter, skip: number, limit: number): FindCursor<RequestLogDocument> {
    return this.#rowsOf(filter)
      .find(this.#toQuery(filter), { ...limits, limit, skip, batchSize: limit + 1 })
      .sort(newestFirst);
  }

  /** Reads where the newest requests that the filter selects came from, at most so many. */
  async readAddresses(filter: RequestFilter, max: number): Promise<readonly AddressedRow[]> {
    return await callMongo(() =>
      this.findPage(filter, 0, max).project<AddressedRow>(addressFields).toArray(),
    );
  }

  /** Sums the newest requests that the filter selects, at most so many. */
  async sumRows(filter: RequestFilter, max: number): Promise<RowSums> {
    const sum = (field: string): object => ({ $sum: `$${field}` });
    const [found] = await callMongo(() =>
      this.#rowsOf(filter)
        .aggregate<Readonly<Record<keyof RowSums, number | bigint>>>(
          [
            { $match: this.#toQuery(filter) },
            { $sort: newestFirst },
            { $limit: max },
            {
              $group: {
                _id: null,
                rows: { $sum: 1 },
                requests: { $sum: { $ifNull: ['$lines', 1] } },
                promptTokens: sum('promptTokens'),
                completionTokens: sum('completionTokens'),
                costNano: sum('costNano'),
              },
            },
          ],
          limits,
        )
        .toArray(),
    );
    return found === undefined
      ? noRows
      : {
          rows: Number(found.rows),
          requests: Number(found.requests),
          promptTokens: Number(found.promptTokens),
          completionTokens: Number(found.completionTokens),
          costNano: BigInt(found.costNano),
        };
  }

  /**
   * Yields all requests that the filter selects, newest first, a page at a time.
   * @param runRead runs the read of a page, such as in a turn of the caller
   */
  async *listPages(
    filter: RequestFilter,
    pageSize: number,
    runRead: RunRead = (read) => read(),
  ): AsyncGenerator<readonly RequestLogDocument[]> {
    let after: Position | undefined;
    for (;;) {
      const { rows, hasMore } = await runRead(() => this.list(filter, pageSize, after));
      yield rows;
      if (!hasMore) return;
      after = positionOf(rows.at(-1)!);
    }
  }

  /**
   * Counts requests. Uses the daily sums if the filter has neither outcome nor upstream, and whole days; otherwise counts up
   * to 10 000. The sums include the lines of batches once, as the row of their batch.
   */
  async count(filter: RequestFilter): Promise<RequestCount> {
    const hasSums = filter.outcome === undefined && filter.upstream === undefined;
    const days = hasSums ? this.#findWholeDays(filter) : null;
    if (days !== null) {
      const sums = await this.#ledger.spend.sum({ ...filter, ...days });
      return { count: sums?.rows ?? 0, isExact: true };
    }
    const count = await this.countRows(filter, maxCounted + 1);
    return { count: Math.min(count, maxCounted), isExact: count <= maxCounted };
  }

  /**
   * Counts rows, up to a maximum. Counts successes and failures separately: MongoDB may use an index without the time for
   * both together, and read all rows.
   */
  async countRows(filter: RequestFilter, max: number): Promise<number> {
    if (selectsNone(filter)) return 0;
    const selected = { ...fieldsOf(filter), at: this.#rangeOf(filter) };
    const options = { ...limits, limit: max };
    const counts = await callMongo(() =>
      Promise.all(
        listOutcomes(filter).map((success) =>
          this.#rowsOf(filter).countDocuments({ ...selected, success }, options),
        ),
      ),
    );
    return Math.min(
      max,
      counts.reduce((sum, count) => sum + count, 0),
    );
  }

  /** The first moment of the first day none of whose rows have been deleted. Earlier requests are found only by id. */
  get #start(): Date {
    return startOfDay(addDays(toDay(this.#now()), 1 - this.#ledger.requestLogDays));
  }

  #rangeOf({ since, until }: RequestFilter): Range {
    // Every row of a later moment is there, though not every row of its day.
    const isKept =
      since !== undefined && since.getTime() >= this.#now().getTime() - this.#ledger.requestLogDays * dayMs;
    return {
      $gte: isKept ? since : this.#start,
      ...(until !== undefined && { $lt: until }),
    };
  }

  /** Returns the days of the filter, both included; null if it does not begin and end with a day. */
  #findWholeDays(filter: RequestFilter): { readonly since: string; readonly until: string } | null {
    const { $gte: since, $lt: until } = this.#rangeOf(filter);
    const isStart = (time: Date): boolean => startOfDay(toDay(time)).getTime() === time.getTime();
    if (!isStart(since) || (until !== undefined && !isStart(until))) return null;
    return { since: toDay(since), until: until === undefined ? lastDay : addDays(toDay(until), -1) };
  }

  /** An order by time is merged from those of the two outcomes. */
  #toQuery(filter: RequestFilter): RowFilter {
    const outcomes = listOutcomes(filter);
    const success = outcomes.length === 1 ? outcomes[0]! : { $in: outcomes };
    return { ...fieldsOf(filter), success, at: this.#rangeOf(filter) };
  }

  #rowsOf({ outcome }: RequestFilter): Rows {
    return outcome === 'rejected' ? this.#ledger.rejections.rows : this.#ledger.logs;
  }

  async #findPosition(filter: RequestFilter, id: string): Promise<Position> {
    const row = await this.#rowsOf(filter).findOne({ _id: id }, { ...limits, projection: { at: 1 } });
    if (row === null) throw new UnknownPosition();
    return { at: row.at, id };
  }

  async #readPart(
    rows: Rows,
    fields: RowFilter,
    range: Range,
    position: Position | null,
    limit: number,
  ): Promise<RequestLogDocument[]> {
    const read = async (selected: RowFilter): Promise<RequestLogDocument[]> =>
      await rows
        .find(selected, { ...limits, limit, batchSize: limit + 1 })
        .sort(newestFirst)
        .toArray();
    if (position !== null && position.at < range.$gte) return [];
    if (position === null || (range.$lt !== undefined && range.$lt <= position.at))
      return await read({ ...fields, at: range });
    // Two reads with a lower and an upper bound each, which an index answers without reading rows of the page before.
    const [atOnce, earlier] = await Promise.all([
      read({ ...fields, at: position.at, _id: { $lt: position.id } }),
      read({ ...fields, at: { $gte: range.$gte, $lt: position.at } }),
    ]);
    return [...atOnce, ...earlier];
  }
}

/** A request in the order of lists. */
export interface Position {
  readonly at: Date;
  readonly id: string;
}

const positionOf = ({ at, _id: id }: RequestLogDocument): Position => ({ at, id });

/** Sorts after all days. */
const lastDay = '9999-12-31';

/** No upstream was called for a rejected request, and no index is for looking for one. */
const selectsNone = ({ outcome, upstream }: RequestFilter): boolean =>
  outcome === 'rejected' && upstream !== undefined;

const listOutcomes = ({ outcome }: RequestFilter): boolean[] =>
  outcome === undefined ? [true, false] : [outcome === 'success'];

const fieldsOf = ({ accountId, model, upstream }: RequestFilter) => ({
  ...(accountId !== undefined && { accountId }),
  ...(model !== undefined && { model }),
  ...(upstream !== undefined && { upstream }),
});

const newestFirst = { at: -1, _id: -1 } as const;

const compareRows = (one: RequestLogDocument, other: RequestLogDocument): number =>
  other.at.getTime() - one.at.getTime() || (one._id < other._id ? 1 : -1);

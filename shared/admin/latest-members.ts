import type { RedisClient } from '../platform/redis/redis-client.ts';
import { listAfter } from './list-after-script.ts';
import { comparePlaces, formatPlace, type ListPlace } from './list-place.ts';
import type { Page } from './page.ts';

/** Records that are read for one page. A list may have fewer wanted ones among them than a page has. */
const maxRead = 1_000;

/** A member of a list with its record; null if it was deleted meanwhile. */
export interface ListedRecord<T> {
  readonly place: ListPlace;
  readonly record: T | null;
}

/**
 * Takes a page of those records of a list that are wanted. It reads at most 1 000, after which it ends with fewer than it may
 * have.
 */
export async function takeWanted<T>(
  listed: AsyncIterable<ListedRecord<T>>,
  isWanted: (record: T) => boolean,
  limit: number,
): Promise<Page<T>> {
  const rows: T[] = [];
  let last: ListPlace | null = null;
  let read = 0;
  for await (const { place, record } of listed) {
    read += 1;
    const isRow = record !== null && isWanted(record);
    const isFull = rows.length === limit;
    if (isRow && !isFull) rows.push(record);
    if (!isFull) last = place;
    if ((isRow && isFull) || read === maxRead)
      return { rows, hasMore: true, lastId: last === null ? null : formatPlace(last) };
  }
  return { rows, hasMore: false, lastId: last === null ? null : formatPlace(last) };
}

/** Members that are read together from each list. */
const defaultPageSize = 100;

/** A sorted set of jobs or batches: score → time (ms). */
export interface MemberList {
  readonly key: string;
  /** Whose list it is: its members are ids. Null for a list of a shard, whose members are `account id`. */
  readonly accountId: string | null;
}

const memberOf = ({ accountId: owner }: MemberList, { accountId, id }: ListPlace): string =>
  owner === null ? `${accountId} ${id}` : id;

function placeOf({ accountId: owner }: MemberList, member: string, atMs: number): ListPlace {
  const [accountId, id] = owner === null ? (member.split(' ') as [string, string]) : [owner, member];
  return { accountId, id, atMs };
}

/** Reads one list, highest score first, one page at a time. */
class ListReader {
  readonly #redis: RedisClient;
  readonly #list: MemberList;
  readonly #pageSize: number;
  #page: ListPlace[] = [];
  #after: ListPlace | null;
  #isAtEnd = false;

  constructor(redis: RedisClient, list: MemberList, after: ListPlace | null, pageSize: number) {
    this.#redis = redis;
    this.#list = list;
    this.#after = after;
    this.#pageSize = pageSize;
  }

  /** Returns null if there are no more. */
  async peek(): Promise<ListPlace | null> {
    if (this.#page.length === 0 && !this.#isAtEnd) await this.#readPage();
    return this.#page.at(-1) ?? null;
  }

  drop(): void {
    this.#page.pop();
  }

  /** The page is kept lowest score first. */
  async #readPage(): Promise<void> {
    const after = this.#after;
    const position = after === null ? null : { score: after.atMs, member: memberOf(this.#list, after) };
    const listed = await listAfter(this.#redis, this.#list.key, position, this.#pageSize);
    this.#page = listed.map(({ member, score }) => placeOf(this.#list, member, score)).toReversed();
    this.#after = this.#page[0] ?? after;
    this.#isAtEnd = listed.length < this.#pageSize;
  }
}

/**
 * Yields the members of several lists together, highest score first, one page at a time. Memory does not grow with their
 * number. Members that are added or removed during the read do not affect the others.
 * @param after where to begin; null for the beginning
 */
export async function* readLatestMembers(
  redis: RedisClient,
  lists: readonly MemberList[],
  after: ListPlace | null = null,
  pageSize = defaultPageSize,
): AsyncGenerator<readonly ListPlace[]> {
  const readers = lists.map((list) => new ListReader(redis, list, after, pageSize));
  for (;;) {
    const places = await takeLatest(readers, pageSize);
    if (places.length === 0) return;
    yield places;
  }
}

/** Takes at most one page across all lists. An empty page means that there are no more. */
async function takeLatest(readers: readonly ListReader[], pageSize: number): Promise<ListPlace[]> {
  const places: ListPlace[] = [];
  while (places.length < pageSize) {
    const heads = await Promise.all(readers.map(async (reader) => ({ reader, head: await reader.peek() })));
    let latest: { readonly reader: ListReader; readonly head: ListPlace } | null = null;
    for (const { reader, head } of heads) {
      if (head !== null && (latest === null || comparePlaces(head, latest.head) < 0))
        latest = { reader, head };
    }
    if (latest === null) break;
    places.push(latest.head);
    latest.reader.drop();
  }
  return places;
}

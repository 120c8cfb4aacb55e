import sortedBtree from 'sorted-btree';

/** The fields of an object in a listing. */
export interface IndexEntry {
  size: number;
  etag: string;
  lastModifiedMs: number;
}

export interface ListQuery {
  prefix: string;
  /** Empty for none. */
  delimiter: string;
  maxKeys: number;
  /** Lists only keys that sort after this key, or after every key with this prefix. */
  after?: { key: string } | { commonPrefix: string } | undefined;
}

export interface ListPage {
  contents: { key: string; entry: IndexEntry }[];
  commonPrefixes: string[];
  /** Where the next page continues. Undefined on the last page. */
  next?: ListQuery['after'];
}

const { default: BTree } = sortedBtree;

/** The keys of a bucket in S3's order, in memory. */
export class ObjectIndex {
  readonly #tree = new BTree<string, IndexEntry>(undefined, compareUtf8);

  get(key: string): IndexEntry | undefined {
    return this.#tree.get(key);
  }

  set(key: string, entry: IndexEntry): void {
    this.#tree.set(key, entry);
  }

  delete(key: string): void {
    this.#tree.delete(key);
  }

  entries(): IterableIterator<[string, IndexEntry]> {
    return this.#tree.entries();
  }

  /** Returns one page of a listing, with only the objects accepted by `isLive`. */
  list(query: ListQuery, isLive: (key: string, entry: IndexEntry) => boolean): ListPage {
    const page: ListPage = { contents: [], commonPrefixes: [] };
    let last: ListQuery['after'];
    let skippedPrefix =
      query.after !== undefined && 'commonPrefix' in query.after ? query.after.commonPrefix : undefined;
    const afterKey = query.after !== undefined && 'key' in query.after ? query.after.key : undefined;
    let pair = this.#tree.getPairOrNextHigher(maxUtf8(query.prefix, skippedPrefix ?? afterKey ?? ''));
    while (pair?.[0].startsWith(query.prefix)) {
      const [key, entry] = pair;
      const isSkipped = skippedPrefix !== undefined && key.startsWith(skippedPrefix);
      if (isSkipped || key === afterKey || !isLive(key, entry)) {
        pair = this.#tree.nextHigherPair(isSkipped ? endOfPrefix(skippedPrefix ?? '', key) : key);
        continue;
      }
      if (page.contents.length + page.commonPrefixes.length >= query.maxKeys) {
        // A page without keys is S3's response to max-keys=0, and it is not truncated.
        if (last !== undefined) page.next = last;
        return page;
      }
      const commonPrefix = findCommonPrefix(key, query);
      if (commonPrefix === undefined) {
        page.contents.push({ key, entry });
        last = { key };
      } else {
        page.commonPrefixes.push(commonPrefix);
        skippedPrefix = commonPrefix;
        last = { commonPrefix };
      }
      pair = this.#tree.nextHigherPair(key);
    }
    return page;
  }
}

/** S3 lists keys in the order of their UTF-8 bytes, which differs from UTF-16's beyond the basic plane. */
export function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const unitA = a.charCodeAt(index);
    const unitB = b.charCodeAt(index);
    if (unitA !== unitB) return rankUnit(unitA) - rankUnit(unitB);
  }
  return a.length - b.length;
}

// Surrogates encode the highest code points, so they rank after all other units.
function rankUnit(unit: number): number {
  return unit >= 0xd8_00 && unit <= 0xdf_ff ? unit + 0x1_00_00 : unit;
}

function maxUtf8(a: string, b: string): string {
  return compareUtf8(a, b) < 0 ? b : a;
}

function findCommonPrefix(key: string, { prefix, delimiter }: ListQuery): string | undefined {
  if (delimiter === '') return undefined;
  const position = key.indexOf(delimiter, prefix.length);
  return position === -1 ? undefined : key.slice(0, position + delimiter.length);
}

// Returns a position from which to continue, so that the thousands of keys that may share a common prefix are skipped
// in one step. The few keys with the prefix that sort after this position are skipped one by one.
function endOfPrefix(prefix: string, key: string): string {
  return maxUtf8(`${prefix}\u{10ffff}`, key);
}

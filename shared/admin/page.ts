/** Which part of a list is wanted. */
export interface PageRequest {
  /** Rows. */
  readonly limit: number;
  /** The `lastId` of the page before; null for the first page. */
  readonly after: string | null;
}

/** A part of a list, newest rows first. */
export interface Page<T> {
  readonly rows: readonly T[];
  readonly hasMore: boolean;
  /** Where the next page begins; null if the page is empty. */
  readonly lastId: string | null;
}

/** Makes a page of up to `limit + 1` rows: one more than wanted shows that there is another page. */
export function toPage<T>(found: readonly T[], limit: number, idOf: (row: T) => string): Page<T> {
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  return { rows, hasMore: found.length > limit, lastId: last === undefined ? null : idOf(last) };
}

/** Takes a page out of rows that are read one after the other. Rows before the page are read, too. */
export async function takePage<T>(
  rows: AsyncIterable<T> | Iterable<T>,
  { limit, after }: PageRequest,
  idOf: (row: T) => string,
): Promise<Page<T>> {
  const found: T[] = [];
  let isPast = after === null;
  for await (const row of rows) {
    if (isPast) found.push(row);
    else isPast = idOf(row) === after;
    if (found.length > limit) break;
  }
  return toPage(found, limit, idOf);
}

/** Reads all pages of a list. */
export async function* readPages<T>(readPage: (after: string | null) => Promise<Page<T>>): AsyncGenerator<T> {
  let after: string | null = null;
  do {
    const page: Page<T> = await readPage(after);
    yield* page.rows;
    after = page.hasMore ? page.lastId : null;
  } while (after !== null);
}

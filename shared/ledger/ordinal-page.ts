/** Rows that are numbered without gaps, by the numbers of their first and last. */
export interface OrdinalSpan {
  readonly oldest: number;
  readonly newest: number;
}

/** Rows of a span; null of none. */
export function countOrdinals(span: OrdinalSpan | null): number {
  return span === null ? 0 : span.newest - span.oldest + 1;
}

/**
 * The part of a span that is one page of it, where the first page holds the newest rows.
 * @returns null past the last page
 */
export function findPage(span: OrdinalSpan | null, page: number, pageSize: number): OrdinalSpan | null {
  if (span === null || page > Math.ceil(countOrdinals(span) / pageSize)) return null;
  const newest = span.newest - (page - 1) * pageSize;
  return { newest, oldest: Math.max(span.oldest, newest - pageSize + 1) };
}

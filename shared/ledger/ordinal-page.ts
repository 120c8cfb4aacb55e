/** A range of rows numbered without gaps, given by its first and last numbers. */
export interface OrdinalSpan {
  readonly oldest: number;
  readonly newest: number;
}

/** Number of rows in a span; 0 for null. */
export function countOrdinals(span: OrdinalSpan | null): number {
  return span === null ? 0 : span.newest - span.oldest + 1;
}

/**
 * Returns one page of a span. The first page holds the newest rows.
 * @returns null past the last page
 */
export function findPage(span: OrdinalSpan | null, page: number, pageSize: number): OrdinalSpan | null {
  if (span === null || page > Math.ceil(countOrdinals(span) / pageSize)) return null;
  const newest = span.newest - (page - 1) * pageSize;
  return { newest, oldest: Math.max(span.oldest, newest - pageSize + 1) };
}

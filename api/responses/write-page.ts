/** Returns the fields of a page that describe the whole list. */
export function describePage(totalCount: number, page: number, pageSize: number) {
  return {
    total_count: totalCount,
    total_pages: Math.ceil(totalCount / pageSize),
    page,
    page_size: pageSize,
  };
}

/**
 * Yields the JSON of a page, row by row, so that a long page can be written in several event-loop turns.
 * @param page the fields that describe the page
 * @param present converts a row to its public form
 */
export function* writePage<T>(
  page: object,
  rows: readonly T[],
  present: (row: T) => object,
): Generator<string> {
  yield `${JSON.stringify(page).slice(0, -1)},"items":[`;
  for (const [i, row] of rows.entries()) yield `${i === 0 ? '' : ','}${JSON.stringify(present(row))}`;
  yield ']}';
}

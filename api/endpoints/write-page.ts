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

import type { CursorPage } from './cursor-list.tsx';

/** Of the list with the most rows that is read whole: routes. More are not shown. */
const maxPages = 50;

/**
 * Reads all pages of a list that is as long as the catalog, such as that of models.
 * @param load reads a page; `after` is null for the first one
 */
export async function readAll<Row>(
  load: (after: string | null) => Promise<CursorPage<Row>>,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  let after: string | null = null;
  for (let i = 0; i < maxPages; i++) {
    const page: CursorPage<Row> = await load(after);
    rows.push(...page.data);
    if (!page.has_more) break;
    after = page.last_id;
  }
  return rows;
}

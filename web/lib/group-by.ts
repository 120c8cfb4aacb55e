/** Puts rows with the same key together, in the order in which the keys come first. */
export function groupBy<Row>(
  rows: readonly Row[],
  read: (row: Row) => string,
): ReadonlyMap<string, readonly Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const group = groups.get(read(row));
    if (group === undefined) groups.set(read(row), [row]);
    else group.push(row);
  }
  return groups;
}

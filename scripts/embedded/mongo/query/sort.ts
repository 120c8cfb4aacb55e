import type { Doc } from '../bson/document.ts';
import { MongoError, unsupported } from '../errors.ts';
import { KeyWriter } from '../bson/key-writer.ts';
import { toNumber } from '../bson/numbers.ts';
import { getSingleAt, parsePath } from '../bson/paths.ts';

export type SortField = { path: string; parts: string[]; direction: 1 | -1 };

export function parseSort(spec: Doc): SortField[] {
  return Object.entries(spec).map(([path, value]) => {
    const direction = toNumber(value);
    if (Number.isNaN(direction)) throw unsupported(`sorting by an expression (${path})`, 'BadValue');
    if (direction !== 1 && direction !== -1) {
      throw new MongoError(
        'Location15975',
        '$sort key ordering must be 1 (for ascending) or -1 (for descending)',
      );
    }
    return { path, parts: parsePath(path), direction };
  });
}

/** Sorts by keys that are computed once per item, in the order of an index on the same fields. */
export function sortDocuments<T>(
  items: Iterable<T>,
  fields: SortField[],
  getDocument: (item: T) => Doc,
): T[] {
  const keyed = Array.from(items, (item) => ({ item, key: encodeSortKey(getDocument(item), fields) }));
  keyed.sort((a, b) => Buffer.compare(a.key, b.key));
  return keyed.map(({ item }) => item);
}

function encodeSortKey(document: Doc, fields: SortField[]): Buffer {
  const writer = new KeyWriter();
  for (const { parts, direction } of fields) {
    const start = writer.length;
    writer.writeValue(getSingleAt(document, parts, 'sorting by'));
    if (direction < 0) writer.invertFrom(start);
  }
  return writer.toBuffer();
}

import type { Collection } from './storage/collection.ts';
import { findDocuments } from './query/find.ts';
import { toNumber } from './bson/numbers.ts';
import type { Store } from './storage/store.ts';

const batchSize = 500;

/** Removes the documents whose time by a TTL index has passed, and returns how many there were. */
export async function expireDocuments(store: Store): Promise<number> {
  let removed = 0;
  for (const collection of store.collections.values()) {
    for (const { spec } of collection.indexes) {
      if (spec.expireAfterSeconds === undefined) continue;
      const before = new Date(Date.now() - toNumber(spec.expireAfterSeconds) * 1000);
      const [path] = Object.keys(spec.key);
      let count: number;
      do {
        count = await store.write(() => removeExpired(collection, { [path!]: { $lte: before } }));
        removed += count;
      } while (count === batchSize);
    }
  }
  return removed;
}

function removeExpired(collection: Collection, filter: Record<string, unknown>): number {
  if (collection.isDropped) return 0;
  const expired = Array.from(findDocuments(collection, { filter, limit: batchSize }));
  for (const stored of expired) collection.remove(stored);
  return expired.length;
}

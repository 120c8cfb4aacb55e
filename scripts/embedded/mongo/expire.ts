import { findDocuments } from './query/find.ts';
import { toNumber } from './bson/numbers.ts';
import type { Store } from './storage/store.ts';

const batchSize = 500;

/**
 * Removes the documents that have expired according to a TTL index.
 * @returns how many there were
 */
export async function expireDocuments(store: Store): Promise<number> {
  let removed = 0;
  const ttlIndexes = Array.from(store.collections.values()).flatMap(({ namespace, indexes }) =>
    indexes
      .filter(({ spec }) => spec.expireAfterSeconds !== undefined)
      .map(({ spec }) => ({ namespace, index: spec.name })),
  );
  for (const { namespace, index } of ttlIndexes) {
    let count: number;
    do {
      count = await store.write(() => removeExpired(store, namespace, index));
      removed += count;
    } while (count === batchSize);
  }
  return removed;
}

/**
 * Looks the collection up for each batch, because between two batches it may be dropped, or reloaded after the disk was
 * full.
 */
function removeExpired(store: Store, namespace: string, index: string): number {
  const collection = store.collections.get(namespace);
  const spec = collection?.indexes.find(({ spec: { name } }) => name === index)?.spec;
  if (collection === undefined || spec?.expireAfterSeconds === undefined) return 0;
  const before = new Date(Date.now() - toNumber(spec.expireAfterSeconds) * 1000);
  const [path] = Object.keys(spec.key);
  const expired = Array.from(
    findDocuments(collection, { filter: { [path!]: { $lte: before } }, limit: batchSize }),
  );
  for (const stored of expired) collection.remove(stored);
  return expired.length;
}

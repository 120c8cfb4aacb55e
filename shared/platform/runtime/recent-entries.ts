import { LRUCache } from 'lru-cache';

/**
 * A cache of the entries used last. Given only `max`, LRUCache allocates room for all entries at once: 4 MB and 15 ms for
 * 100 000, whether or not they ever come. Counted as sizes, they take room as they come.
 * @param ttlMs how long an entry is valid; by default until it is dropped
 */
export const createRecentEntries = <K extends {}, V extends {}>(
  maxEntries: number,
  ttlMs?: number,
): LRUCache<K, V> =>
  new LRUCache<K, V>({
    maxSize: maxEntries,
    sizeCalculation: () => 1,
    ...(ttlMs === undefined ? {} : { ttl: ttlMs }),
  });

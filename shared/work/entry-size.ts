/** The value's object, its entries in the tables of keys and of expiry times, and its share of both tables. */
const tablesBytes = 16 + 24 + 24 + 32;
/** The entry's record in the list that defines the eviction order. */
const recordBytes = 72;
/** Overhead of Redis for each name and each value. */
const nameOverheadBytes = 4;
const valueOverheadBytes = 10;

/**
 * Returns how much of Redis's memory one string of these lengths takes, in bytes. With short vectors, a limit on the
 * values alone would be exceeded by half.
 */
export function measureEntry(nameLength: number, valueLength: number): number {
  return (
    tablesBytes +
    recordBytes +
    roundToAllocation(nameLength + nameOverheadBytes) +
    roundToAllocation(valueLength + valueOverheadBytes)
  );
}

/** Redis's allocator has four size classes between consecutive powers of two. */
function roundToAllocation(bytes: number): number {
  const step = Math.max(8, 2 ** (Math.ceil(Math.log2(bytes)) - 3));
  return Math.ceil(bytes / step) * step;
}

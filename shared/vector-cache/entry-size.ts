/** The value's object, its entries in the tables of keys and expiries, and their share of both tables. */
const tablesBytes = 16 + 24 + 24 + 32;
/** The entry's record in the list that gives the order of eviction. */
const recordBytes = 72;
/** Overhead around the text of a name and of a value. */
const nameFrameBytes = 4;
const valueFrameBytes = 10;

/**
 * Bytes of Redis's memory that one string of these lengths takes. With short vectors, a bound on values alone would be
 * exceeded by half.
 */
export function measureEntry(nameLength: number, valueLength: number): number {
  return (
    tablesBytes +
    recordBytes +
    roundToAllocation(nameLength + nameFrameBytes) +
    roundToAllocation(valueLength + valueFrameBytes)
  );
}

/** Redis's allocator has four size classes between each power of two and the next. */
function roundToAllocation(bytes: number): number {
  const step = Math.max(8, 2 ** (Math.ceil(Math.log2(bytes)) - 3));
  return Math.ceil(bytes / step) * step;
}

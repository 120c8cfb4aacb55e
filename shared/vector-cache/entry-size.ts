/** The object of a value, and its entries in the tables of keys and of expiries, with their share of both tables. */
const tablesBytes = 16 + 24 + 24 + 32;
/** Its record in the order in which entries are dropped. */
const recordBytes = 72;
/** Before and after the text of a name and of a value. */
const nameFrameBytes = 4;
const valueFrameBytes = 10;

/**
 * What Redis's memory loses to one string of these lengths: a bound on values alone would be passed by half where
 * vectors are short.
 */
export function measureEntry(nameLength: number, valueLength: number): number {
  return (
    tablesBytes +
    recordBytes +
    roundToAllocation(nameLength + nameFrameBytes) +
    roundToAllocation(valueLength + valueFrameBytes)
  );
}

/** Redis's allocator gives memory in sizes of which there are four between a power of two and the next. */
function roundToAllocation(bytes: number): number {
  const step = Math.max(8, 2 ** (Math.ceil(Math.log2(bytes)) - 3));
  return Math.ceil(bytes / step) * step;
}

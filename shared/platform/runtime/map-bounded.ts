/**
 * Like `Promise.all` of a map, with at most `maxConcurrent` items in progress. Starts no more items after a failure.
 * @returns the results in the order of the items
 */
export async function mapBounded<T, R>(
  items: readonly T[],
  maxConcurrent: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const runLane = async (): Promise<void> => {
    while (next < items.length) {
      const i = next++;
      try {
        results[i] = await work(items[i]!);
      } catch (error) {
        next = items.length;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(maxConcurrent, items.length) }, runLane));
  return results;
}

/** Service times are averaged over so many of a line's latest jobs. */
export const measuredJobs = 20;

/**
 * Milliseconds that a job takes on average; null where none was measured. From five on, the shortest and the longest are
 * left out, so that one job that hung does not multiply everybody's estimate.
 */
export function averageServiceMs(timesMs: readonly number[]): number | null {
  if (timesMs.length === 0) return null;
  const sorted = [...timesMs].sort((one, other) => one - other);
  const counted = sorted.length < 5 ? sorted : sorted.slice(1, -1);
  return counted.reduce((sum, ms) => sum + ms, 0) / counted.length;
}

/** The lower one in the middle. */
export function findMedian(values: readonly number[]): number | null {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}

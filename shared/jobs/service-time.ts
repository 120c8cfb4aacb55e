/** Service times are averaged over so many of a line's latest jobs. */
export const measuredJobs = 20;
/** So many of them are kept, to know how many ran at once. */
export const keptRuns = 100;

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

/** A job that ran and has ended. */
export interface EndedRun {
  readonly serviceMs: number;
  /** Since its end. */
  readonly agoMs: number;
}

/**
 * How many jobs ran at once, on average over the last so many milliseconds: fewer than that where more of them ended than
 * are kept.
 * @param runningMs for how long each of the running jobs has run
 */
export function averageRunning(
  runningMs: readonly number[],
  ended: readonly EndedRun[],
  windowMs: number,
): number {
  if (windowMs <= 0) return runningMs.length;
  const ofRunning = runningMs.reduce((sum, elapsedMs) => sum + Math.min(elapsedMs, windowMs), 0);
  const ofEnded = ended.reduce(
    (sum, { serviceMs, agoMs }) => sum + Math.max(0, Math.min(serviceMs, windowMs - agoMs)),
    0,
  );
  return (ofRunning + ofEnded) / windowMs;
}

/** The lower one in the middle. */
export function findMedian(values: readonly number[]): number | null {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}

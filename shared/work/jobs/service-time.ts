/** How many of a model's latest jobs are used for its average service time. */
export const measuredJobs = 20;
/** Number of ended jobs that are stored to determine how many ran at the same time. */
export const maxStoredRuns = 100;

/**
 * Returns the average job duration in milliseconds, or null if none was measured. With five or more values, the
 * shortest and the longest are omitted, so that one job that hung does not inflate every estimate.
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
  /** Milliseconds since its end. */
  readonly agoMs: number;
}

/** A period of time before the present. */
export interface Period {
  /** How long ago it ended. */
  readonly endedMs: number;
  readonly durationMs: number;
}

/**
 * Returns the average number of jobs that ran at the same time within the period. The result is too low if more jobs
 * ended since its start than are stored.
 * @param runningMs how long each running job has been running
 */
export function averageRunning(
  runningMs: readonly number[],
  ended: readonly EndedRun[],
  { endedMs, durationMs }: Period,
): number {
  if (durationMs <= 0) return runningMs.length;
  const within = (startedAgoMs: number, endedAgoMs: number): number =>
    Math.max(0, Math.min(startedAgoMs, endedMs + durationMs) - Math.max(endedAgoMs, endedMs));
  const ofRunning = runningMs.reduce((sum, elapsedMs) => sum + within(elapsedMs, 0), 0);
  const ofEnded = ended.reduce((sum, { serviceMs, agoMs }) => sum + within(agoMs + serviceMs, agoMs), 0);
  return (ofRunning + ofEnded) / durationMs;
}

/** Returns the median, or the lower of the two middle values. */
export function findMedian(values: readonly number[]): number | null {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}

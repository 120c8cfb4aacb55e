/** Errors by reason. */
export type ErrorCounts = Readonly<Record<string, number>>;

const maxReasons = 20;

/** Counts an error. Reasons that contain a number or an id could be too many, so there is a limit. */
export function countError(errors: Record<string, number>, reason: string): void {
  const isKnown = Object.hasOwn(errors, reason) || Object.keys(errors).length < maxReasons;
  const name = isKnown ? reason : 'other errors';
  errors[name] = (errors[name] ?? 0) + 1;
}

export const listErrors = (errors: ErrorCounts): string[] =>
  Object.entries(errors).map(([reason, count]) => `${count} × ${reason}`);

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/**
 * Returns a value that was actually measured, or 0 if there is none.
 * @param sorted in ascending order
 * @param share 0..1
 */
export const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;

/** Returns the run with the median value; with an even number of runs, the lower of the two in the middle. */
export const chooseMedian = <T>(runs: readonly T[], valueOf: (run: T) => number): T =>
  runs.toSorted((a, b) => valueOf(a) - valueOf(b))[Math.floor((runs.length - 1) / 2)]!;

/** Latency of requests that are sent repeatedly during a measurement. */
export interface LatencySummary {
  readonly probes: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Wrong responses, by reason. */
  readonly failures: ErrorCounts;
}

export function summarizeLatency(tookMs: readonly number[], failures: ErrorCounts): LatencySummary {
  const sorted = tookMs.toSorted((a, b) => a - b);
  return { probes: sorted.length, p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99), failures };
}

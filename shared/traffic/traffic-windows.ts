/** A span of recent time that figures are summed over, in buckets that begin at multiples of their length. */
export interface TrafficWindow {
  readonly bucketSeconds: number;
  /** Full buckets before the current one. */
  readonly previousBuckets: number;
  /** How long a bucket stays after it was last written: longer than any window still reads it. */
  readonly keptSeconds: number;
}

const minute = 60;
const hour = 60 * minute;

/** The models' figures: 30 minutes, and what the current bucket holds already. */
export const modelWindow: TrafficWindow = {
  bucketSeconds: 5 * minute,
  previousBuckets: 6,
  keptSeconds: 40 * minute,
};

/** The figures of everything: 24 hours, and what the current bucket holds already. */
export const totalWindow: TrafficWindow = {
  bucketSeconds: 10 * minute,
  previousBuckets: 144,
  keptSeconds: 25 * hour,
};

export const totalPeriodHours = 24;

/** Numbers of the buckets that a window covers at a time, the current one first. */
export function findBuckets(window: TrafficWindow, nowMs: number): number[] {
  const current = Math.floor(nowMs / 1_000 / window.bucketSeconds);
  return Array.from({ length: window.previousBuckets + 1 }, (_, i) => current - i);
}

/** A step of the clock, the same for all who share it: when it began, and how much of it is left. */
export function findStep(
  stepMs: number,
  nowMs: number,
): { readonly startMs: number; readonly leftMs: number } {
  const startMs = Math.floor(nowMs / stepMs) * stepMs;
  return { startMs, leftMs: startMs + stepMs - nowMs };
}

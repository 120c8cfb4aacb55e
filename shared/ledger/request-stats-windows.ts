/** A period of recent time over which stats are summed, in buckets that begin at multiples of their length. */
export interface StatsWindow {
  readonly bucketSeconds: number;
  /** Full buckets before the current one. */
  readonly previousBuckets: number;
  /** How long a bucket is kept after its last write. Longer than the window that it belongs to. */
  readonly retentionSeconds: number;
}

const minute = 60;
const hour = 60 * minute;

/** Per-model stats: 30 minutes plus the current bucket. */
export const modelWindow: StatsWindow = {
  bucketSeconds: 5 * minute,
  previousBuckets: 6,
  retentionSeconds: 40 * minute,
};

/** What operators see of the last hour: 60 minutes plus the current bucket. */
export const lastHourWindow: StatsWindow = {
  bucketSeconds: 5 * minute,
  previousBuckets: 12,
  retentionSeconds: 70 * minute,
};

/** Stats over all models: 24 hours plus the current bucket. */
export const totalWindow: StatsWindow = {
  bucketSeconds: 10 * minute,
  previousBuckets: 144,
  retentionSeconds: 25 * hour,
};

/** Per-model stats of each hour, of everybody and of operators: 23 hours and the current one. */
export const hourWindow: StatsWindow = {
  bucketSeconds: hour,
  previousBuckets: 23,
  retentionSeconds: 25 * hour,
};

export const totalPeriodHours = 24;

/** The numbers of the buckets in a window, the current one first. */
export function findBuckets(window: StatsWindow, nowMs: number): number[] {
  const current = Math.floor(nowMs / 1_000 / window.bucketSeconds);
  return Array.from({ length: window.previousBuckets + 1 }, (_, i) => current - i);
}

/** The current step of a shared clock: its start and the time remaining. */
export function findStep(
  stepMs: number,
  nowMs: number,
): { readonly startMs: number; readonly leftMs: number } {
  const startMs = Math.floor(nowMs / stepMs) * stepMs;
  return { startMs, leftMs: startMs + stepMs - nowMs };
}

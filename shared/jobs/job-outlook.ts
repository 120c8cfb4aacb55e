import { findMedian } from './service-time.ts';

/** An account with waiting jobs of a line. */
export interface WaitingAccount {
  readonly accountId: string;
  readonly waiting: number;
  readonly weight: number;
  /** Virtual time at which its next job may start. */
  readonly startTag: number;
}

/** A line at one moment: what position and ETA are estimated from. */
export interface JobOutlook {
  /** Start tag of the last turn taken. */
  readonly virtualTime: number;
  readonly accounts: readonly WaitingAccount[];
  readonly running: number;
  /** For how long each of the running jobs has run. */
  readonly runningMs: readonly number[];
  /** Average of the latest jobs that ended; null where none was ever measured. */
  readonly serviceMs: number | null;
}

/**
 * Milliseconds that a job takes now. A running job is seen half-way on average. Where the running ones have been at it
 * for longer than jobs used to take in all, jobs have become slower. The median: one job that hangs says nothing of others.
 */
function estimateServiceMs({ serviceMs, runningMs }: JobOutlook): number | null {
  const elapsedMs = findMedian(runningMs);
  if (elapsedMs === null) return serviceMs;
  return serviceMs === null ? 2 * elapsedMs : Math.max(serviceMs, elapsedMs);
}

/**
 * Seconds until a waiting job is done, to the millisecond; null where nothing is known of the line yet. Those that run
 * now are half-way on average, so the first of those that wait starts after half of the time between two ends.
 * @param position jobs of the line that start before it
 */
export function estimateEta(outlook: JobOutlook, position: number): number | null {
  const serviceMs = estimateServiceMs(outlook);
  if (serviceMs === null) return null;
  const turns = outlook.running === 0 ? position : (position + 1 / 2) / outlook.running;
  return toSeconds((turns + 1) * serviceMs);
}

/**
 * Seconds until a running job is done, to the millisecond. One that has taken longer than usual is expected to take a
 * quarter as long again as it has taken so far.
 */
export function estimateRest(outlook: JobOutlook, elapsedMs: number): number {
  const serviceMs = estimateServiceMs(outlook) ?? 2 * elapsedMs;
  return toSeconds(Math.max(serviceMs - elapsedMs, elapsedMs / 4));
}

const toSeconds = (ms: number): number => Math.round(ms) / 1_000;

import { averageRunning, findMedian, type EndedRun } from './service-time.ts';

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
  /** The latest jobs that ended, the last one first. */
  readonly ended: readonly EndedRun[];
  /** What jobs took on average; null where none was ever measured. */
  readonly serviceMs: number | null;
}

/** How a line goes on, as far as it is known. */
interface Pace {
  /** What a job takes now. */
  readonly serviceMs: number;
  /** When each of the places where jobs run is expected to be free, the first one first. */
  readonly restsMs: readonly number[];
}

const paces = new WeakMap<JobOutlook, Pace | null>();

function findPace(outlook: JobOutlook): Pace | null {
  let pace = paces.get(outlook);
  if (pace === undefined) {
    pace = measurePace(outlook);
    paces.set(outlook, pace);
  }
  return pace;
}

/**
 * A running job is seen half-way on average. Where the running ones have been at it for longer than jobs used to take in
 * all, jobs have become slower. The median: one job that hangs says nothing of others.
 *
 * Where fewer run than ran on average for as long as a job takes, the next ones are on their way to the places of those that
 * have just ended. Jobs that were begun together end together: without these places, whoever looked at that moment would
 * be told that the line goes on one job at a time.
 */
function measurePace({ serviceMs: measuredMs, runningMs, ended }: JobOutlook): Pace | null {
  const elapsedMs = findMedian(runningMs);
  const serviceMs = elapsedMs === null ? measuredMs : Math.max(measuredMs ?? 2 * elapsedMs, elapsedMs);
  if (serviceMs === null) return null;
  const restsMs = runningMs.map((elapsedMs) => findRestMs(serviceMs, elapsedMs));
  const free = Math.round(averageRunning(runningMs, ended, serviceMs)) - runningMs.length;
  for (let i = 0; i < free; i++) restsMs.push(0);
  return { serviceMs, restsMs: restsMs.sort((one, other) => one - other) };
}

/** A job that takes longer than usual is expected to take a quarter as long again as it has taken so far. */
const findRestMs = (serviceMs: number, elapsedMs: number): number =>
  Math.max(serviceMs - elapsedMs, elapsedMs / 4);

const toSeconds = (ms: number): number => Math.round(ms) / 1_000;

/**
 * Seconds until a waiting job is done, to the millisecond; null where nothing is known of the line yet. Each of those that
 * wait is taken to start when one of the places is free, or when one of those that start there before it ends.
 * @param position jobs of the line that start before it
 */
export function estimateEta(outlook: JobOutlook, position: number): number | null {
  const pace = findPace(outlook);
  if (pace === null) return null;
  const { serviceMs, restsMs } = pace;
  if (restsMs.length === 0) return toSeconds((position + 1) * serviceMs);
  const rounds = Math.floor(position / restsMs.length);
  return toSeconds(restsMs[position % restsMs.length]! + (rounds + 1) * serviceMs);
}

/** Seconds until a running job is done, to the millisecond. */
export function estimateRest(outlook: JobOutlook, elapsedMs: number): number {
  return toSeconds(findRestMs(findPace(outlook)?.serviceMs ?? 2 * elapsedMs, elapsedMs));
}

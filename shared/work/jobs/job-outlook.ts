import { averageRunning, findMedian, type EndedRun } from './service-time.ts';

/** An account with waiting jobs in a model queue. */
export interface WaitingAccount {
  readonly accountId: string;
  readonly waiting: number;
  readonly weight: number;
  /** Virtual time at which the account's next job may start. */
  readonly startTag: number;
}

/** Snapshot of a model queue, used to estimate position and ETA. */
export interface JobOutlook {
  /** Start tag of the last turn taken. */
  readonly virtualTime: number;
  readonly accounts: readonly WaitingAccount[];
  readonly running: number;
  /** How long each running job has been running. */
  readonly runningMs: readonly number[];
  /** Recently ended jobs, latest first. */
  readonly ended: readonly EndedRun[];
  /** Average job duration. Null if none has been measured. */
  readonly serviceMs: number | null;
}

/** Estimated speed of a model queue. */
interface Pace {
  /** How long a job currently takes. */
  readonly serviceMs: number;
  /** Expected times until the slots of the running jobs become free, soonest first. */
  readonly remainingMs: readonly number[];
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
 * Estimates the job duration from the running jobs if none has been measured: on average, a running job is observed
 * when half of its time has passed. If the running jobs have already run longer than the measured duration, jobs have
 * become slower, and the time that they have run so far is used instead. The median is used because one job that hangs
 * says nothing about the others.
 *
 * If fewer jobs run now than ran on average over one job duration, the next jobs are about to start in the slots that
 * have just become free. Jobs that started together end together: without counting these slots, an estimate made at
 * that moment would assume that the model runs one job at a time.
 */
function measurePace({ serviceMs: measuredMs, runningMs, ended }: JobOutlook): Pace | null {
  const elapsedMs = findMedian(runningMs);
  const serviceMs = elapsedMs === null ? measuredMs : Math.max(measuredMs ?? 2 * elapsedMs, elapsedMs);
  if (serviceMs === null) return null;
  const remainingMs = runningMs.map((elapsedMs) => findRemainingMs(serviceMs, elapsedMs));
  const freeSlots = countSlots(runningMs, ended, serviceMs) - runningMs.length;
  for (let i = 0; i < freeSlots; i++) remainingMs.push(0);
  return { serviceMs, remainingMs: remainingMs.sort((one, other) => one - other) };
}

/**
 * Estimates how many jobs run at the same time. Between the end of some jobs and the start of the next, a worker or
 * Redis may pause, which does not change the number of slots. So unless the last job ended long ago, the time before
 * its end counts as much as the time before now.
 */
function countSlots(runningMs: readonly number[], ended: readonly EndedRun[], serviceMs: number): number {
  const averageUntil = (endedMs: number): number =>
    averageRunning(runningMs, ended, { endedMs, durationMs: serviceMs });
  const lastEndMs = ended[0]?.agoMs ?? 0;
  const isRecent = lastEndMs <= 2 * serviceMs;
  return Math.round(isRecent ? Math.max(averageUntil(0), averageUntil(lastEndMs)) : averageUntil(0));
}

/** A job that takes longer than usual is expected to need another quarter of the time it has taken so far. */
const findRemainingMs = (serviceMs: number, elapsedMs: number): number =>
  Math.max(serviceMs - elapsedMs, elapsedMs / 4);

const toSeconds = (ms: number): number => Math.round(ms) / 1_000;

/**
 * Estimates the seconds until a waiting job is done, rounded to the millisecond. Null if nothing is known about the
 * queue yet. Each waiting job is assumed to start when a slot becomes free, or when an earlier job in that slot ends.
 * @param position number of jobs in the model queue that start before it
 */
export function estimateEta(outlook: JobOutlook, position: number): number | null {
  const pace = findPace(outlook);
  if (pace === null) return null;
  const { serviceMs, remainingMs } = pace;
  if (remainingMs.length === 0) return toSeconds((position + 1) * serviceMs);
  const rounds = Math.floor(position / remainingMs.length);
  return toSeconds(remainingMs[position % remainingMs.length]! + (rounds + 1) * serviceMs);
}

/** Estimates the seconds until a running job is done, rounded to the millisecond. */
export function estimateRemainingSeconds(outlook: JobOutlook, elapsedMs: number): number {
  return toSeconds(findRemainingMs(findPace(outlook)?.serviceMs ?? 2 * elapsedMs, elapsedMs));
}

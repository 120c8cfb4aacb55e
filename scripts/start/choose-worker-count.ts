// decision 0094
import { queueNames, type QueueName } from '../../shared/work/queue/job-kinds.ts';
import type { Demand, QueueDemand } from './read-demand.ts';

export interface ScaleSettings {
  readonly min: number;
  readonly max: number;
  /** How long work that a further worker could take has waited when one starts. */
  readonly upAfterMs: number;
  /** How long one worker less would have been enough when one stops. */
  readonly downAfterMs: number;
}

/** What is remembered between two looks at the demand. */
export interface ScaleState {
  /** How many workers ran at the last look. */
  readonly workers: number;
  /** Since when they have all been ready; null while one of them starts. */
  readonly readySinceMs: number | null;
  /** Since when one less would have been enough; null if all are needed, or if the demand is not known. */
  readonly unneededSinceMs: number | null;
}

export interface Situation {
  readonly nowMs: number;
  /** Null if it is not known. */
  readonly demand: Demand | null;
  /** Workers that run, without those that are stopping. */
  readonly workers: number;
  /** How many of them have not been ready since they started. */
  readonly starting: number;
}

export interface ScaleDecision {
  readonly state: ScaleState;
  /** How many workers to run. At most one less than now. */
  readonly workers: number;
  /** The queue that more workers are for; null otherwise. */
  readonly queue: QueueName | null;
}

/** Work that waits for less than this is only on its way to a worker. */
const onTheWayMs = 1_000;

export const initialScaleState: ScaleState = { workers: 0, readySinceMs: null, unneededSinceMs: null };

/**
 * Decides how many workers to run. One more starts once work has waited for `upAfterMs`, and as many as already run if
 * it has waited for twice as long or would be too much for one more. The next one starts when all have been
 * ready for `upAfterMs`, so that they have had time to take what waits. One stops after each `downAfterMs` in which one
 * less would have been enough.
 */
export function chooseWorkerCount(
  state: ScaleState,
  { nowMs, demand, workers, starting }: Situation,
  settings: ScaleSettings,
): ScaleDecision {
  const readySinceMs = starting > 0 ? null : (state.readySinceMs ?? nowMs);
  const isNeeded = demand === null || workers <= settings.min || isLastNeeded(demand, workers, settings);
  const isChanged = workers !== state.workers;
  const unneededSinceMs = isNeeded ? null : isChanged ? nowMs : (state.unneededSinceMs ?? nowMs);
  const next = { workers, readySinceMs, unneededSinceMs };
  if (demand === null) return { state: next, workers, queue: null };

  const isSettled = readySinceMs !== null && nowMs - readySinceMs >= settings.upAfterMs;
  const queue = findWaitingQueue(demand, settings.upAfterMs);
  if (queue !== null && isSettled && workers < settings.max) {
    const step = isFarBehind(demand[queue], settings.upAfterMs) ? workers : 1;
    return { state: next, workers: Math.min(workers + step, settings.max), queue };
  }
  const isUnneeded = unneededSinceMs !== null && nowMs - unneededSinceMs >= settings.downAfterMs;
  return { state: next, workers: isUnneeded ? workers - 1 : workers, queue: null };
}

/** The queue whose work has waited longest, if that is long enough. */
function findWaitingQueue(demand: Demand, upAfterMs: number): QueueName | null {
  const [longest] = queueNames
    .filter((name) => hasWaited(demand[name], upAfterMs))
    .toSorted((a, b) => demand[b].takeableWaitingMs - demand[a].takeableWaitingMs);
  return longest ?? null;
}

const hasWaited = ({ takeable, takeableWaitingMs }: QueueDemand, ms: number): boolean =>
  takeable > 0 && takeableWaitingMs >= ms;

const capacityOfOne = ({ capacity, workers }: QueueDemand): number =>
  workers === 0 ? 0 : capacity / workers;

/** Whether the work has waited for long, or would still be too much for one worker more. */
const isFarBehind = (queue: QueueDemand, upAfterMs: number): boolean =>
  queue.takeableWaitingMs >= 2 * upAfterMs ||
  (queue.workers > 0 && queue.demand > queue.capacity + capacityOfOne(queue));

/** Whether work waits, or there is more of it than one worker less could run. */
function isLastNeeded(demand: Demand, workers: number, { upAfterMs }: ScaleSettings): boolean {
  return queueNames.some((name) => {
    const queue = demand[name];
    const remaining = queue.capacity - capacityOfOne(queue);
    return hasWaited(queue, Math.min(onTheWayMs, upAfterMs)) || (workers > 1 && queue.demand > remaining);
  });
}

import type { QueueName } from '../queue/job-kinds.ts';
import type { Demand, WorkDemand } from './demand.ts';

/**
 * The part of a worker's concurrency that a line of a batch uses. A worker takes lines in slices, and runs more of them at a
 * time than requests, the most if they share calls.
 */
const lineShare: Readonly<Record<QueueName, number>> = { chat: 1 / 8, image: 1 / 2, embedding: 1 / 768 };

/** The sums over some work. */
export interface DemandSums {
  /** Work that does not run yet, wherever it waits. */
  readonly waiting: number;
  /** The part of it that a worker has taken and that waits for its vendor's limit. More workers do not help. */
  readonly waitingForSlot: number;
  readonly running: number;
  readonly oldestMs: number;
}

export interface DemandSummary extends DemandSums {
  /** What a further worker could begin now. */
  readonly takeable: number;
  /** How long the first of that has waited. */
  readonly takeableMs: number;
  /** How much of the workers' concurrency all of it uses that can run now, has been taken or runs. */
  readonly demand: number;
  /** How long the workers need for what waits, if they go on as in the last minute; null if nothing ended. */
  readonly etaSeconds: number | null;
  readonly models: ReadonlyMap<string, DemandSums>;
}

const hasTakeable = ({ waiting, waitingForSlot }: WorkDemand): boolean => waiting > 0 && waitingForSlot === 0;

/** Sums up the work of one queue. Lines of batches count as what they are, except in `demand`. */
export function summarizeQueue({ work, queues }: Demand, queue: QueueName): DemandSummary {
  const ofQueue = work.filter((one) => one.queue === queue);
  const models = new Map<string, DemandSums>();
  for (const one of ofQueue) models.set(one.model, add(models.get(one.model) ?? noWork, one));
  const sums = ofQueue.reduce<DemandSums>(add, noWork);
  const takeable = ofQueue.filter(hasTakeable);
  const demand = ofQueue.reduce((sum, one) => {
    const share = one.callClass === 'batch' ? lineShare[queue] : 1;
    // What waits behind a vendor's limit would only wait in other workers.
    return sum + share * (one.running + (hasTakeable(one) ? one.waiting : one.waitingForSlot));
  }, 0);
  const { endedPerMinute } = queues[queue];
  return {
    ...sums,
    takeable: takeable.reduce((sum, { waiting }) => sum + waiting, 0),
    takeableMs: Math.max(0, ...takeable.map(({ oldestUntakenMs }) => oldestUntakenMs)),
    demand: Math.ceil(demand),
    etaSeconds:
      sums.waiting === 0 ? 0 : endedPerMinute === 0 ? null : Math.ceil((60 * sums.waiting) / endedPerMinute),
    models,
  };
}

const noWork: DemandSums = { waiting: 0, waitingForSlot: 0, running: 0, oldestMs: 0 };

const add = (sums: DemandSums, one: DemandSums): DemandSums => ({
  waiting: sums.waiting + one.waiting,
  waitingForSlot: sums.waitingForSlot + one.waitingForSlot,
  running: sums.running + one.running,
  oldestMs: Math.max(sums.oldestMs, one.oldestMs),
});

import type { QueueName } from '../queue/job-kinds.ts';
import type { Demand, WorkDemand } from './demand.ts';

/**
 * How many durable jobs and lines of batches a worker takes at a time, beside the requests of its capacity
 * ([job-intake](../../../workers/intake/job-intake.ts), [batch-intake](../../../workers/batches/batch-intake.ts)).
 */
const mostTaken: Readonly<Record<QueueName, Readonly<Record<'job' | 'batch', number>>>> = {
  chat: { job: 64, batch: 8 * 64 },
  image: { job: 64, batch: 8 * 16 },
  embedding: { job: 256, batch: 24 * 2_048 },
};
/** Of a worker, while none is alive. */
const usualCapacity = 64;

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

const hasTakeable = ({ untaken, waitingForSlot }: WorkDemand): boolean => untaken > 0 && waitingForSlot === 0;

/** Sums up the work of one queue. Lines of batches count as what they are, except in `demand`. */
export function summarizeQueue({ work, queues }: Demand, queue: QueueName): DemandSummary {
  const ofQueue = work.filter((one) => one.queue === queue);
  const models = new Map<string, DemandSums>();
  for (const one of ofQueue) models.set(one.model, add(models.get(one.model) ?? noWork, one));
  const sums = ofQueue.reduce<DemandSums>(add, noWork);
  const takeable = ofQueue.filter(hasTakeable);
  const { endedPerMinute, workers, capacity } = queues[queue];
  const ofOne = workers === 0 ? usualCapacity : capacity / workers;
  const demand = ofQueue.reduce((sum, one) => {
    const share = one.callClass === 'interactive' ? 1 : ofOne / mostTaken[queue][one.callClass];
    // What nobody has taken and waits behind a vendor's limit would only wait in a worker.
    return sum + share * (one.running + one.waiting - (hasTakeable(one) ? 0 : one.untaken));
  }, 0);
  return {
    ...sums,
    takeable: takeable.reduce((sum, { untaken }) => sum + untaken, 0),
    takeableMs: Math.max(0, ...takeable.map(({ oldestUntakenMs }) => oldestUntakenMs)),
    demand: Math.ceil(demand),
    etaSeconds:
      sums.waiting === 0 ? 0 : endedPerMinute === 0 ? null : Math.ceil((60 * sums.waiting) / endedPerMinute),
    models,
  };
}

/** As it is told to people and scalers: to a tenth of a second. */
export const toSeconds = (ms: number): number => Math.round(ms / 100) / 10;

const noWork: DemandSums = { waiting: 0, waitingForSlot: 0, running: 0, oldestMs: 0 };

const add = (sums: DemandSums, one: DemandSums): DemandSums => ({
  waiting: sums.waiting + one.waiting,
  waitingForSlot: sums.waitingForSlot + one.waitingForSlot,
  running: sums.running + one.running,
  oldestMs: Math.max(sums.oldestMs, one.oldestMs),
});

import type { CallClass } from '../queue/call-class.ts';
import type { QueueName } from '../queue/job-kinds.ts';

/** The work of one model and class: requests whose callers wait, durable jobs, or lines of batches. */
export interface WorkDemand {
  readonly queue: QueueName;
  /** The catalog's id. */
  readonly model: string;
  readonly callClass: CallClass;
  /** Work that does not run yet, wherever it waits. */
  readonly waiting: number;
  /** The part of it that a worker has taken and that waits for a call slot of its vendor. */
  readonly waitingForSlot: number;
  /** The part of it that no worker has taken. */
  readonly untaken: number;
  readonly running: number;
  /** How long the first of those that wait has waited; 0 if none waits. */
  readonly oldestMs: number;
  /** How long the first of those that no worker has taken has waited; 0 if there are none. */
  readonly oldestUntakenMs: number;
}

/** The workers of a queue. */
export interface QueueCapacity {
  readonly workers: number;
  /** How many requests the workers that take work run at a time, together. */
  readonly capacity: number;
  /** Requests, jobs and lines that ended within the last minute. */
  readonly endedPerMinute: number;
  /** How many workers run each version of the product. */
  readonly versions: ReadonlyMap<string, number>;
}

/** All work of the gateway, and who does it. */
export interface Demand {
  /** Only models and classes with work. */
  readonly work: readonly WorkDemand[];
  readonly queues: Readonly<Record<QueueName, QueueCapacity>>;
  /** Batches by status: the unfinished ones, and those that have ended since the beginning. */
  readonly batches: ReadonlyMap<string, number>;
}

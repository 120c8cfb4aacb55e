import type { QueueName } from '../queue/job-kinds.ts';

/**
 * Identifies a model queue: the jobs of one queue that wait for one model. Accounts take turns within a model queue, and
 * model queues take turns within their queue. Names in the code call it a line, because `queue` is the whole queue.
 */
export interface JobLine {
  readonly queue: QueueName;
  readonly model: string;
}

/** The turns of batches are apart from those of jobs. */
export type BatchQueueName = `batch-${QueueName}`;
export const batchQueueOf = (queue: QueueName): BatchQueueName => `batch-${queue}`;

/** A queue whose accounts take turns. */
export type TurnQueue = QueueName | BatchQueueName;

/** The jobs or batches of one queue that wait for one model. */
export interface TurnLine {
  readonly queue: TurnQueue;
  readonly model: string;
}

/** A turn: the account may start one job of the model. */
export interface JobTurn {
  readonly model: string;
  readonly accountId: string;
  /** The account's weight when it took the turn. */
  readonly weight: number;
  /** Serial number of the job that the account added last. If it is higher later, a job was added in the meantime. */
  readonly adds: number;
}

/** Jobs that a worker has taken but not started, by model and account. */
export type HeldJobs = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** A job that a worker has started and that has not ended. */
export interface RunningJob {
  readonly line: JobLine;
  readonly jobId: string;
}

/**
 * Virtual time that one turn of weight 1 takes. It is the least common multiple of 1 to 16, so turns of these weights
 * are exact. Shares of other weights are off by less than 0.01 %. A double counts 12 billion such turns exactly.
 */
export const turnUnits = 720_720;

/** Virtual times above this are shifted back to zero, well before doubles can no longer represent every integer. */
export const maxVirtualTime = 2 ** 52;

export const maxWeight = 100;

/** Returns the virtual time that one turn of an account takes. The higher the weight, the sooner its next turn. */
export function turnCost(weight: number): number {
  return Math.floor(turnUnits / weight + 0.5);
}

import type { QueueName } from '../queue/job-kinds.ts';

/** Jobs that wait for the same thing: one queue, one model. Accounts take turns within a line, lines within a queue. */
export interface JobLine {
  readonly queue: QueueName;
  readonly model: string;
}

/** The account may start one job of that model. */
export interface JobTurn {
  readonly model: string;
  readonly accountId: string;
  /** The account's weight when the turn was taken. */
  readonly weight: number;
  /** Number of the account's latest addition. A higher one later shows that a job was added meanwhile. */
  readonly adds: number;
}

/** Jobs that a worker has taken and not begun: of each model, of each account. */
export type HeldJobs = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** A job that a worker has started and not ended. */
export interface RunningJob {
  readonly line: JobLine;
  readonly jobId: string;
}

/**
 * Virtual time that one turn of weight 1 takes. It is the least common multiple of 1 to 16, so turns of these weights are
 * exact; the shares of the others are off by less than 0.01 %. A double counts 12 thousand million such turns exactly.
 */
export const turnUnits = 720_720;

/** Virtual times are moved back to zero from here on, well before doubles lose whole numbers. */
export const maxVirtualTime = 2 ** 52;

export const maxWeight = 100;

/** Virtual time that a turn of an account takes: the heavier the account, the sooner its next turn. */
export function turnCost(weight: number): number {
  return Math.floor(turnUnits / weight + 0.5);
}

import type { Waits } from '../fairness/scenario.ts';
import { uniqueMark } from '../scenario.ts';
import type { MoneyResult } from '../money-check.ts';

export const jobsTitle = 'Durable jobs: placed, then run';

/** An account may have made so many within a day, and one more is no use here. */
export const mostJobs = 200_000;

/**
 * Connections that place jobs: as many as keep one api process busy. More of them would place no more jobs, and all that is
 * measured beside them would wait in one queue with them.
 */
export const jobCallers = 8;

/** `GET /v1/jobs/{id}` a second, at a steady pace, whatever else happens. */
export const lookUpsPerSecond = 50;
/** What the slowest hundredth of them may take. */
export const lookUpTargetMs = 20;

const model = 'bench-embedding-instant';

/**
 * Workers merge the inputs of waiting jobs into few calls, and vectors are short: what is measured is the way of a job, not
 * a vendor, and not the stores of large answers.
 */
export const jobBody = JSON.stringify({
  model,
  input: `Passage ${uniqueMark}: the committee approved the budget for the new library.`,
  dimensions: 64,
  encoding_format: 'base64',
});

/** The list that the jobs wait in. */
export const jobLine = { queue: 'embedding', model } as const;

export type JobsPhase = 'placing' | 'running';

/** Told to the process that places jobs and looks them up. */
export interface JobsPlan {
  readonly host: string;
  readonly port: number;
  readonly apiKey: string;
  readonly jobs: number;
  readonly callers: number;
}

export interface Placed {
  /** Jobs that were answered with 202. */
  readonly jobs: number;
  readonly measuredMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly errors: Readonly<Record<string, number>>;
}

/** What that process says: how far it is, that all are placed, and at the end how long its look-ups took. */
export type JobsMessage =
  | { readonly kind: 'progress'; readonly jobs: number }
  | { readonly kind: 'placed'; readonly placed: Placed }
  | { readonly kind: 'looked-up'; readonly lookUps: Readonly<Record<JobsPhase, Waits>> };

/** CPU time of a phase, by process, for each of its jobs. */
export interface PhaseCpu {
  readonly cpuMsPerJob: Readonly<Record<string, number>>;
  /** CPU time that others used of all there was, 0..1. */
  readonly othersShare: number;
}

/** Single jobs of another account, one after the other, as their own records tell it. */
export interface SingleJobs {
  readonly probes: number;
  /** From its creation to its start. */
  readonly waitMs: { readonly p50: number; readonly most: number };
  /** From its creation to its end. */
  readonly doneMs: { readonly p50: number; readonly most: number };
  /** Jobs of the large account that were started between its creation and its start. */
  readonly startedBetween: { readonly p50: number; readonly most: number };
}

/** All sizes in bytes, for each job. */
export interface JobMemory {
  readonly waiting: number;
  /** What a worker needs to run it, as JSON. */
  readonly body: number;
  readonly ended: number;
  readonly answer: number;
}

export interface JobsRun {
  readonly jobs: number;
  readonly callers: number;
  readonly placed: Placed & PhaseCpu;
  /** From the first start of a job to the last end. */
  readonly ran: PhaseCpu & { readonly measuredMs: number; readonly jobsPerSecond: number };
  readonly memory: JobMemory;
  readonly lookUps: Readonly<Record<JobsPhase, Waits>>;
  readonly single: { readonly alone: SingleJobs; readonly behind: SingleJobs };
  /** Jobs that a second worker had to take. */
  readonly retaken: number;
  readonly money: MoneyResult;
  /** What is not as it must be. */
  readonly faults: readonly string[];
}

import type { LoadMessage } from '../../harness/load/load-plan.ts';
import { uniqueMark } from '../../harness/load/request-writer.ts';
import type { MoneyResult } from '../../harness/stack/money-check.ts';
import { embeddingModelOf } from '../../harness/stack/standard-stack.ts';
import type { ErrorCounts, LatencySummary } from '../../harness/statistics.ts';

export const jobsTitle = 'Durable jobs: placed, then run';

/** The maximum number of jobs that an account may create within a day. The benchmark uses a single account. */
export const maxJobs = 200_000;

/**
 * Connections that place jobs: enough to keep one api process busy. More connections would not place more jobs, and
 * other measured requests would wait behind them.
 */
export const jobCallers = 8;

/** Constant rate of `GET /v1/jobs/{id}` requests, independent of response times. */
export const lookUpsPerSecond = 50;
/** Target for the 99th percentile of their response times. */
export const lookUpTargetMs = 20;

const model = embeddingModelOf('instant');

/**
 * Workers merge the inputs of waiting jobs into few calls, and vectors are short, so this measures the path of a job,
 * not a vendor or the storage of large responses.
 */
export const jobBody = JSON.stringify({
  model,
  input: `Passage ${uniqueMark}: the committee approved the budget for the new library.`,
  dimensions: 64,
  encoding_format: 'base64',
});

/** The queue and model that the jobs wait for. */
export const jobQueue = { queue: 'embedding', model } as const;

export type JobsPhase = 'placing' | 'running';

/** How long look-ups took in each phase. */
export type LookUps = Readonly<Record<JobsPhase, LatencySummary>>;

/** A report of the process that places jobs and looks them up: the result is that all are placed. */
export type JobsMessage = LoadMessage | { readonly kind: 'looked-up'; readonly lookUps: LookUps };

export interface PlacingResult {
  /** Jobs that were accepted with 202. */
  readonly jobs: number;
  readonly measuredMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly errors: ErrorCounts;
}

/** CPU time per job in one phase, by process. */
export interface PhaseCpu {
  readonly cpuMsPerJob: Readonly<Record<string, number>>;
  /** Share of all CPU time used by other processes, 0..1. */
  readonly othersShare: number;
}

/** Single jobs of another account, one after another, according to their own records. */
export interface SingleJobs {
  readonly probes: number;
  /** From creation to start. */
  readonly waitMs: { readonly p50: number; readonly most: number };
  /** From creation to end. */
  readonly doneMs: { readonly p50: number; readonly most: number };
  /** Jobs of the large account that started between the single job's creation and its start. */
  readonly startedBetween: { readonly p50: number; readonly most: number };
}

/** Bytes per job. */
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
  readonly placed: PlacingResult & PhaseCpu;
  /** From the first start of a job to the last end. */
  readonly ran: PhaseCpu & { readonly measuredMs: number; readonly jobsPerSecond: number };
  readonly memory: JobMemory;
  readonly lookUps: LookUps;
  readonly single: { readonly alone: SingleJobs; readonly behind: SingleJobs };
  /** Number of jobs that were started a second time. */
  readonly retaken: number;
  readonly money: MoneyResult;
  /** Errors that were found. */
  readonly faults: readonly string[];
}

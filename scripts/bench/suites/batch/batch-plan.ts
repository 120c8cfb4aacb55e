import type { CpuUse } from '../../harness/clocks/cpu-clock.ts';
import type { Scenario } from '../../harness/suite.ts';

/** What a vendor call takes: a time per call and per input, and how many run at a time. */
export interface VendorPace {
  readonly perCallMs: number;
  readonly perInputMs: number;
  readonly calls: number;
}

export interface BatchScenario extends Scenario {
  readonly format: 'base64' | 'float';
  readonly pace: VendorPace;
  /** Batches that run at the same time, and the accounts that create them in turn. */
  readonly batches: number;
  readonly accounts: number;
  /** Of a vector. */
  readonly dimensions: number;
  /** Whether they run once more beside an innocent caller, and once more until they are cancelled. */
  readonly isDisturbed: boolean;
}

/** The least share of the speed of a direct run, alone and beside an innocent caller. */
export const targets = { ratio: 0.9, ratioBeside: 0.85, cancelMs: 2_000, bytesPerLine: 10 };

export const fullCall = 2_048;

const slow: VendorPace = { perCallMs: 30, perInputMs: 0.8, calls: 8 };
const quick: VendorPace = { ...slow, perInputMs: 0.2 };

const common = { batches: 1, accounts: 1, dimensions: 1_536, isDisturbed: false } as const;

const twenty = {
  ...common,
  group: 'batches',
  format: 'base64',
  batches: 20,
  accounts: 4,
  dimensions: 64,
} as const;

export const batchScenarios: readonly BatchScenario[] = [
  {
    ...common,
    name: 'batch-slow',
    title: 'A batch of embeddings, 30 ms + 0.8 ms per input, base64',
    format: 'base64',
    pace: slow,
    isDisturbed: true,
  },
  {
    ...common,
    name: 'batch-float',
    title: 'A batch of embeddings, 30 ms + 0.8 ms per input, float',
    format: 'float',
    pace: slow,
  },
  {
    ...common,
    name: 'batch-quick',
    title: 'A batch of embeddings, 30 ms + 0.2 ms per input, base64',
    format: 'base64',
    pace: quick,
  },
  {
    ...twenty,
    name: 'batches-slow',
    title: 'Twenty batches of four accounts, 30 ms + 0.8 ms per input, 64 dimensions',
    pace: slow,
    isDisturbed: true,
  },
  {
    ...twenty,
    name: 'batches-quick',
    title: 'Twenty batches of four accounts, 30 ms + 0.2 ms per input, 64 dimensions',
    pace: quick,
  },
];

/** How long a full call takes. */
export const fullCallMs = ({ perCallMs, perInputMs }: VendorPace): number =>
  perCallMs + perInputMs * fullCall;

/** The most memory that a process had, and what it had before, in MB. */
export interface PeakMemory {
  readonly beforeMb: number;
  readonly peakMb: number;
}

export interface DirectRun {
  readonly measuredMs: number;
  readonly calls: number;
  readonly cpu: CpuUse;
}

/** One run of batches, from the first call that creates one until all have ended. */
export interface BatchRun {
  readonly lines: number;
  readonly measuredMs: number;
  /** Until a line of the first batch could be read. */
  readonly firstResultMs: number;
  readonly cpu: CpuUse;
  readonly memory: Readonly<Record<'api' | 'worker', PeakMemory>>;
  /** Redis memory of the waiting batches per line, right after they were created. */
  readonly redisBytesPerLine: number;
  /** Latency of the innocent caller, if there was one. */
  readonly beside: { readonly probes: number; readonly p50Ms: number; readonly p99Ms: number } | null;
  readonly faults: readonly string[];
}

export interface CancelRun {
  /** From the call until all lines are in the files. */
  readonly endedMs: number;
  readonly completed: number;
  readonly failed: number;
  readonly faults: readonly string[];
}

export interface BatchResult {
  readonly scenario: string;
  readonly uploadMs: number;
  /** The same lines, sent to the vendor itself in full calls. */
  readonly direct: DirectRun;
  readonly alone: BatchRun;
  /** An innocent caller without any batch. */
  readonly callerAloneP99Ms: number | null;
  readonly beside: BatchRun | null;
  readonly cancelled: CancelRun | null;
}

/** The times of a direct run over those of a batch. */
export const ratioTo = (direct: DirectRun, run: BatchRun): number => direct.measuredMs / run.measuredMs;

import { startBenchStack } from './bench-stack.ts';
import { memoryLoad } from './embeddings.ts';
import type { MoneyResult } from './money-check.ts';
import { MoneyCheck } from './money-check.ts';
import type { Programs } from './programs.ts';
import { readRssMb } from './rss-clock.ts';
import { runLoad } from './run-load.ts';
import { countCallers, countVectors } from './scenario.ts';

/** Shares of the run at which memory is reported. The last is compared with the one before it. */
export const memoryMarks = [0.1, 0.5, 1] as const;

/** Memory of one process in MB: the maximum, and for each mark the mean of the preceding tenth of the run. */
export interface MemoryUse {
  readonly process: string;
  readonly atMarksMb: readonly number[];
  readonly peakMb: number;
  readonly isFlat: boolean;
}

export interface MemoryRun {
  readonly inputs: number;
  readonly callers: number;
  readonly measuredMs: number;
  readonly processes: readonly MemoryUse[];
  readonly errors: Readonly<Record<string, number>>;
  readonly money: MoneyResult;
}

export interface MemoryOptions {
  readonly programs: Programs;
  readonly dir: string;
  readonly logLevel: string;
  readonly callers: number | null;
  /** Minimum number of inputs. The last call may exceed it. */
  readonly inputs: number;
  /** Called with the progress of the run, from 0 to 1. */
  readonly onProgress: (progress: number) => void;
}

/**
 * Growth in the second half up to this share is treated as flat, because heap sizes vary by as much between two garbage
 * collections.
 */
const flatShare = 0.1;
const flatMb = 16;

/** One sample of all processes, and the progress of the run at that moment: 0 at its start, 1 at its end. */
export interface MemorySample {
  readonly progress: number;
  readonly mb: Readonly<Record<string, number>>;
}

/** Sends this many inputs through the gateway and samples the memory of all its processes. */
export async function measureMemory(options: MemoryOptions): Promise<MemoryRun> {
  const { programs, dir, logLevel, onProgress } = options;
  const stack = await startBenchStack({ programs, dir, env: process.env, logLevel, profileDir: null });
  const money = new MoneyCheck(stack.env, stack.accountId);
  try {
    const inputsPerCall = countVectors(memoryLoad);
    const requests = Math.ceil(options.inputs / inputsPerCall);
    const callers = countCallers(memoryLoad, options.callers);
    const pids = { vendor: stack.vendorPids.instant, ...stack.pids };
    const samples: MemorySample[] = [];
    const startedAt = new Date();
    const plan = {
      ...stack.gateway,
      path: `/v1${memoryLoad.path}`,
      body: JSON.stringify({ model: memoryLoad.models.gateway, ...memoryLoad.body }),
      callers,
      background: 0,
      span: { kind: 'work', requests },
      expects: memoryLoad.expects,
      pids,
    } as const;
    const load = await runLoad(programs, plan, (answers, loadPid) => {
      const progress = answers / requests;
      const all = Object.entries({ ...pids, load: loadPid });
      samples.push({ progress, mb: Object.fromEntries(all.map(([name, pid]) => [name, readRssMb(pid)])) });
      onProgress(progress);
    });
    return {
      inputs: load.answers * inputsPerCall,
      callers,
      measuredMs: load.measuredMs,
      processes: ['api', 'worker', 'redis', 'mongo', 'vendor', 'load'].map((name) => sumUp(name, samples)),
      errors: load.errors,
      money: await money.check(startedAt, load.allAnswers),
    };
  } finally {
    await money.close();
  }
}

export function sumUp(process: string, samples: readonly MemorySample[]): MemoryUse {
  const readings = samples.flatMap(({ progress, mb }) =>
    mb[process] === undefined ? [] : [{ progress, mb: mb[process] }],
  );
  const atMarksMb = memoryMarks.map((mark) => {
    const inTenth = readings.filter(({ progress }) => progress > mark - 0.1 && progress <= mark);
    // If the run is too short for a sample in this tenth, use the last one before it.
    const usedReadings =
      inTenth.length > 0 ? inTenth : readings.filter(({ progress }) => progress <= mark).slice(-1);
    return usedReadings.reduce((sum, { mb }) => sum + mb, 0) / Math.max(1, usedReadings.length);
  });
  const middle = atMarksMb.at(-2) ?? 0;
  const end = atMarksMb.at(-1) ?? 0;
  return {
    process,
    atMarksMb,
    peakMb: readings.reduce((peak, { mb }) => Math.max(peak, mb), 0),
    isFlat: end <= middle * (1 + flatShare) + flatMb,
  };
}

import { readRssMb } from '../../harness/clocks/rss-clock.ts';
import { countCallers } from '../../harness/load/load-plan.ts';
import { runChargedLoad } from '../../harness/load/run-load.ts';
import type { Programs } from '../../harness/programs.ts';
import type { MoneyResult } from '../../harness/stack/money-check.ts';
import { startStandardStack } from '../../harness/stack/standard-stack.ts';
import type { ErrorCounts } from '../../harness/statistics.ts';
import type { Settings } from '../../harness/suite.ts';
import { largeInstant } from '../scenarios/embeddings.ts';
import { countVectors } from '../scenarios/load-scenario.ts';

const inputsPerCall = countVectors(largeInstant);

export const memoryScenario = {
  ...largeInstant,
  group: 'memory',
  name: 'memory',
  title: `Memory, ${inputsPerCall} inputs per call, base64`,
  callers: 64,
} as const;

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
  readonly errors: ErrorCounts;
  readonly money: MoneyResult;
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

/**
 * Sends inputs through the gateway and samples the memory of all its processes.
 * @param inputs at least; the last call may exceed it
 * @param onProgress called with the progress of the run, from 0 to 1
 */
export async function measureMemory(
  programs: Programs,
  settings: Settings,
  inputs: number,
  onProgress: (progress: number) => void,
): Promise<MemoryRun> {
  const { path, body, models, expects } = memoryScenario;
  const stack = await startStandardStack(programs, settings);
  const requests = Math.ceil(inputs / inputsPerCall);
  const callers = countCallers(memoryScenario, settings);
  const pids = { vendor: stack.vendors.instant.pid, ...stack.pids };
  const samples: MemorySample[] = [];
  const plan = {
    ...stack.gateway,
    path: `/v1${path}`,
    body: JSON.stringify({ model: models.gateway, ...body }),
    callers,
    span: { kind: 'work', requests },
    expects,
    pids,
  } as const;
  const load = await runChargedLoad(programs, stack.money, plan, (answers, loadPid) => {
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
    money: load.money,
  };
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

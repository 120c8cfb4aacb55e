import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { sum } from '../statistics.ts';

/** The kernel counts a process's time in hundredths of a second (USER_HZ, the same on all Linux platforms). */
const msPerTick = 10;
const userTicksField = 11;
const systemTicksField = 12;

/** Returns the CPU time of a process, across all its threads. */
export function readProcessCpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The second field, the program's name in parentheses, may contain anything. The third starts after the last
  // parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[userTicksField]) + Number(fields[systemTicksField])) * msPerTick;
}

/** Returns the CPU time of everything on this machine. */
function readMachineCpuMs(): number {
  const [line = ''] = readFileSync('/proc/stat', 'latin1').split('\n', 1);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softIrq + steal) * msPerTick;
}

export interface CpuSample {
  readonly atMs: number;
  readonly processes: Readonly<Record<string, number>>;
  readonly machineMs: number;
}

export const sampleCpu = (pids: Readonly<Record<string, number>>): CpuSample => ({
  atMs: performance.now(),
  processes: mapValues(pids, readProcessCpuMs),
  machineMs: readMachineCpuMs(),
});

export interface CpuUse {
  readonly measuredMs: number;
  /** Milliseconds by process. */
  readonly processes: Readonly<Record<string, number>>;
  /** CPU time outside the measured processes, and its share of that of all cores, 0..1. A high one spoils results. */
  readonly othersMs: number;
  readonly othersShare: number;
}

export function compareCpu(before: CpuSample, after: CpuSample): CpuUse {
  const measuredMs = after.atMs - before.atMs;
  const processes = mapValues(after.processes, (ms, name) => ms - (before.processes[name] ?? 0));
  const othersMs = Math.max(0, after.machineMs - before.machineMs - sum(Object.values(processes)));
  return { measuredMs, processes, othersMs, othersShare: othersMs / (measuredMs * availableParallelism()) };
}

/** CPU milliseconds per unit of work, by process. */
export const divideCpu = ({ processes }: CpuUse, units: number): Readonly<Record<string, number>> =>
  mapValues(processes, (ms) => ms / Math.max(1, units));

function mapValues(
  values: Readonly<Record<string, number>>,
  map: (value: number, name: string) => number,
): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value, name)] as const));
}

/** Begins to measure processes. @returns a function that ends it */
export function startCpuPhase(pids: Readonly<Record<string, number>>): () => CpuUse {
  const before = sampleCpu(pids);
  return () => compareCpu(before, sampleCpu(pids));
}

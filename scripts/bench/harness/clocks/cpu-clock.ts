import { readFileSync } from 'node:fs';

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
export function readMachineCpuMs(): number {
  const [line = ''] = readFileSync('/proc/stat', 'latin1').split('\n', 1);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0, steal = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softIrq + steal) * msPerTick;
}

export interface CpuSample {
  readonly processes: Readonly<Record<string, number>>;
  readonly machineMs: number;
}

export const sampleCpu = (pids: Readonly<Record<string, number>>): CpuSample => ({
  processes: mapValues(pids, readProcessCpuMs),
  machineMs: readMachineCpuMs(),
});

export interface CpuUse {
  /** Milliseconds by process. */
  readonly processes: Readonly<Record<string, number>>;
  /** CPU time outside the measured processes. If it is high, the results are not reliable. */
  readonly othersMs: number;
}

export function compareCpu(before: CpuSample, after: CpuSample): CpuUse {
  const processes = mapValues(after.processes, (ms, name) => ms - (before.processes[name] ?? 0));
  const measuredMs = Object.values(processes).reduce((sum, ms) => sum + ms, 0);
  return { processes, othersMs: Math.max(0, after.machineMs - before.machineMs - measuredMs) };
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

/** Measures processes from its creation to `end`. */
export class CpuPhase {
  readonly #pids: Readonly<Record<string, number>>;
  readonly #before: CpuSample;
  readonly #startedAtMs = performance.now();

  constructor(pids: Readonly<Record<string, number>>) {
    this.#pids = pids;
    this.#before = sampleCpu(pids);
  }

  end(): CpuUse & { readonly measuredMs: number } {
    const measuredMs = performance.now() - this.#startedAtMs;
    return { ...compareCpu(this.#before, sampleCpu(this.#pids)), measuredMs };
  }
}

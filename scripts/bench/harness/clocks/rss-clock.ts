import { readFileSync } from 'node:fs';

const kbPerMb = 1_024;

/** Returns a process's current resident memory, including shared memory. */
export function readRssMb(pid: number): number {
  const kb = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
  return kb === undefined ? 0 : Number(kb) / kbPerMb;
}

import { readFileSync } from 'node:fs';

/**
 * CPU time of this thread in milliseconds. It does not advance while other threads have the processor, so that
 * measurements are the same on a busy machine. Falls back to wall-clock time if the system does not report it.
 */
export function readThreadMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ', 1)[0]) / 1e6;
  } catch {
    return performance.now();
  }
}

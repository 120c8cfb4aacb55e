import { readFileSync } from 'node:fs';

/**
 * CPU time of this thread in milliseconds. It stands still while others have the processor, so that what is measured by it
 * is the same on a busy machine. Time as it passes, where the system does not tell.
 */
export function readThreadMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ', 1)[0]) / 1e6;
  } catch {
    return performance.now();
  }
}

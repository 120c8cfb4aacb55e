import { setTimeout as delay } from 'node:timers/promises';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import type { Faults } from '../reporting/faults.ts';

export interface PeriodicTask {
  /** For the log, such as `maintaining jobs`. */
  readonly name: string;
  readonly intervalMs: number;
  readonly run: () => Promise<unknown> | void;
}

/** Runs a task repeatedly, with a pause after each run. A failed run is retried at the next interval. */
export function runPeriodically({ name, intervalMs, run }: PeriodicTask, faults: Faults): Running {
  const stopping = new AbortController();
  const { signal } = stopping;
  const loop = (async () => {
    while (!signal.aborted) {
      try {
        await run();
        faults.clear(name);
      } catch (error) {
        faults.note(name, error);
      }
      // Rejects only when the loop is aborted.
      await delay(intervalMs, undefined, { signal }).catch(() => undefined);
    }
  })();
  return {
    async stop() {
      stopping.abort();
      await loop;
    },
  };
}

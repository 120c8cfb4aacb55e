import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';

export interface PeriodicTask {
  /** For the log. */
  readonly name: string;
  readonly intervalMs: number;
  readonly run: () => Promise<unknown> | void;
}

/** Runs a task repeatedly, with a pause after each run. A failed run is retried at the next interval. */
export function runPeriodically({ name, intervalMs, run }: PeriodicTask, log: Logger): Running {
  const stopping = new AbortController();
  const { signal } = stopping;
  const loop = (async () => {
    while (!signal.aborted) {
      try {
        await run();
      } catch (error) {
        log.debug({ chore: name, err: error }, 'a chore failed; it is tried again');
      }
      // Rejects only by the abort that ends the loop.
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

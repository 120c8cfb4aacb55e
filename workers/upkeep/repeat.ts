import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';

export interface Chore {
  /** As the log names it. */
  readonly name: string;
  readonly intervalMs: number;
  readonly run: () => Promise<unknown> | void;
}

/** Does a chore again and again, with a pause after each time; a failure is for the next time to mend. */
export function repeat({ name, intervalMs, run }: Chore, log: Logger): Running {
  const stopping = new AbortController();
  const { signal } = stopping;
  const loop = (async () => {
    while (!signal.aborted) {
      try {
        await run();
      } catch (error) {
        log.debug({ chore: name, err: error }, 'a chore failed; it is tried again');
      }
      // The only rejection is the abort that ends the loop.
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

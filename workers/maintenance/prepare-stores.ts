import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import { explainStoreFailure } from '../../shared/storage/explain-store-failure.ts';

const firstRetryMs = 500;
const lastRetryMs = 15_000;

/**
 * Prepares the stores (indexes, the bucket and its rules), each as soon as it is reachable, so that a worker
 * starts while MongoDB or S3 is unavailable. All steps are safe to repeat, by every worker at every start.
 */
export function startPreparing(steps: Readonly<Record<string, () => Promise<void>>>, log: Logger): Running {
  const stopping = new AbortController();
  const loops = Object.entries(steps).map(([name, run]) => prepare(name, run, log, stopping.signal));
  return {
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}

async function prepare(
  name: string,
  run: () => Promise<void>,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  for (let retryMs = firstRetryMs; !signal.aborted; retryMs = Math.min(lastRetryMs, retryMs * 2)) {
    try {
      await run();
      log.debug({ store: name }, 'prepared');
      return;
    } catch (error) {
      log.warn(
        { store: name, reason: explainStoreFailure(error) },
        'could not be prepared yet; trying again',
      );
    }
    // Rejects only by the abort that ends the loop.
    await delay(retryMs, undefined, { signal }).catch(() => undefined);
  }
}

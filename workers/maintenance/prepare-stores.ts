import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import { explainStoreFailure } from '../reporting/explain-store-failure.ts';

const firstRetryMs = 500;
const maxRetryMs = 15_000;

/**
 * Prepares the stores (indexes, the bucket and its rules), each as soon as it is reachable, so that a worker can start
 * while MongoDB or S3 is unavailable. All steps are safe to repeat: every worker runs them at every start.
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
  for (let retryMs = firstRetryMs; !signal.aborted; retryMs = Math.min(maxRetryMs, retryMs * 2)) {
    try {
      await run();
      log.debug({ store: name }, 'store prepared');
      return;
    } catch (error) {
      log.warn({ store: name, reason: explainStoreFailure(error) }, 'preparing a store failed; retrying');
    }
    // Rejects only when the loop is aborted.
    await delay(retryMs, undefined, { signal }).catch(() => undefined);
  }
}

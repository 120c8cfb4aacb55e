import type { Logger } from './logger.ts';

const intervalMs = 1_000;
/** Longer than a busy process keeps its timers waiting. */
const pauseMs = 5_000;

/**
 * Logs that the process did not run for a while: it was stopped, its machine was suspended, or something blocked its event
 * loop. Others then took it for dead, and its own timeouts expired.
 */
export function watchPauses(log: Pick<Logger, 'warn'>): void {
  let lastMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const forMs = nowMs - lastMs - intervalMs;
    lastMs = nowMs;
    if (forMs > pauseMs)
      log.warn({ seconds: Math.round(forMs / 1_000) }, 'this process did not run for a while');
  }, intervalMs);
  timer.unref();
}

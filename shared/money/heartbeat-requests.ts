// decision 0013
import type { Running } from '../platform/runtime/lifecycle.ts';
import type { Logger } from '../platform/runtime/logger.ts';
import type { HeartbeatRequest, ReservationStore } from './reservation-store.ts';
import { liveness } from '../platform/redis/liveness.ts';

/**
 * Sends periodic heartbeats for a process's requests. Requests that started after the previous heartbeat are skipped,
 * because nearly all of them end before the next one.
 */
export function startRequestHeartbeat(
  reservations: ReservationStore,
  list: () => Iterable<HeartbeatRequest>,
  log: Logger,
): Running {
  let previousIds = new Set<string>();
  const timer = setInterval(() => {
    const requests = [...list()];
    const longRunning = requests.filter(({ requestId }) => previousIds.has(requestId));
    previousIds = new Set(requests.map(({ requestId }) => requestId));
    if (longRunning.length === 0) return;
    reservations.sendHeartbeat(longRunning).catch((error: unknown) => {
      log.debug({ err: error }, 'request heartbeat failed');
    });
  }, liveness.request.reportMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
    },
  };
}

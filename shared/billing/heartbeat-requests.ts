import type { Running } from '../runtime/lifecycle.ts';
import type { Logger } from '../runtime/logger.ts';
import {
  requestHeartbeatIntervalMs,
  type HeartbeatRequest,
  type ReservationStore,
} from './reservation-store.ts';

/**
 * Sends periodic heartbeats for a process's requests. Requests that started after the previous heartbeat are skipped,
 * because nearly all of them end before the next one.
 */
export function startRequestHeartbeat(
  reservations: ReservationStore,
  list: () => Iterable<HeartbeatRequest>,
  log: Logger,
): Running {
  let before = new Set<string>();
  const timer = setInterval(() => {
    const now = [...list()];
    const held = now.filter((request) => before.has(request.requestId));
    before = new Set(now.map((request) => request.requestId));
    if (held.length === 0) return;
    reservations.hold(held).catch((error: unknown) => {
      log.debug({ err: error }, 'request heartbeat failed');
    });
  }, requestHeartbeatIntervalMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
    },
  };
}

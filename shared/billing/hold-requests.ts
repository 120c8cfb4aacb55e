import type { Running } from '../runtime/lifecycle.ts';
import type { Logger } from '../runtime/logger.ts';
import { holdIntervalMs, type HeldRequest, type ReservationStore } from './reservation-store.ts';

/**
 * Says again and again of a process's requests that they are in hand. Those that were not there the last time are left
 * out: nearly all end before the next.
 */
export function startHolding(
  reservations: ReservationStore,
  list: () => Iterable<HeldRequest>,
  log: Logger,
): Running {
  let before = new Set<string>();
  const timer = setInterval(() => {
    const now = [...list()];
    const held = now.filter((request) => before.has(request.requestId));
    before = new Set(now.map((request) => request.requestId));
    if (held.length === 0) return;
    reservations.hold(held).catch((error: unknown) => {
      log.debug({ err: error }, 'what is in hand could not be told');
    });
  }, holdIntervalMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
    },
  };
}

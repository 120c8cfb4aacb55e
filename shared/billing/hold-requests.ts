import type { Running } from '../runtime/lifecycle.ts';
import type { Logger } from '../runtime/logger.ts';
import { holdIntervalMs, type HeldRequest, type ReservationStore } from './reservation-store.ts';

/** Says again and again of a process's requests that they are in hand; those just begun are left out. */
export function startHolding(
  reservations: ReservationStore,
  list: () => Iterable<HeldRequest>,
  log: Logger,
): Running {
  const timer = setInterval(() => {
    const startedBefore = Date.now() - holdIntervalMs;
    const held = [...list()].filter((request) => request.admittedAtMs < startedBefore);
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

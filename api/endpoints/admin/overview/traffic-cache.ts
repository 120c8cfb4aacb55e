import type { TrafficStore } from '../../../../shared/ledger/traffic-store.ts';
import type { Logger } from '../../../../shared/platform/runtime/logger.ts';
import { StatsCache } from '../../public/stats-cache.ts';
import { describeTraffic, type Traffic } from './describe-traffic.ts';

/** Keeps the description of the traffic, which is many times the work of sending it, for as long as it is valid. */
export const createTrafficCache = (
  store: Pick<TrafficStore, 'readLastHour' | 'readHours'>,
  validForMs: number,
  log: Logger,
): StatsCache<Traffic> =>
  new StatsCache({
    read: async () => {
      const [minutes, hours] = [await store.readLastHour(), await store.readHours()];
      return { value: describeTraffic(minutes, hours), validForMs };
    },
    log,
  });

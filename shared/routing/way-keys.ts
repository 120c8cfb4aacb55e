import { redisKeys } from '../redis/redis-keys.ts';
import type { RouteWay } from './route-way.ts';

/** Sorted sets that a call of this way takes a slot of, and their bounds; 0 where there is none. */
export function slotsOf({ route, fingerprint }: RouteWay): { keys: string[]; limits: number[] } {
  const { upstream } = route;
  return {
    keys: [
      redisKeys.callsOfUpstream(upstream.name),
      redisKeys.callsOfKey(upstream.name, fingerprint),
      redisKeys.callsOfRoute(route.id),
    ],
    limits: [upstream.maxConcurrency, upstream.maxConcurrencyPerKey ?? 0, route.maxConcurrency ?? 0],
  };
}

/** Under which names a key of this way is set aside: for everything, on this route alone, and there for some accounts. */
export function setAsideFields({ route, fingerprint }: RouteWay): {
  key: string;
  keyOnRoute: string;
  keyForSome: string;
} {
  const keyOnRoute = `${fingerprint} ${route.id}`;
  return { key: fingerprint, keyOnRoute, keyForSome: `some ${keyOnRoute}` };
}

/** The name under which an account's call holds its slots. */
export function nameLease(accountId: string, lease: string): string {
  return `${accountId}|${lease}`;
}

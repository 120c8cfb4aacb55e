import { redisKeys } from '../platform/redis/redis-keys.ts';
import type { CatalogRoute } from '../catalog/catalog-schema.ts';
import { listCandidates, type RouteCandidate } from './route-candidate.ts';

/** The sorted sets in which a call of this candidate takes a slot, and their limits; 0 for no limit. */
export function slotsOf({ route, fingerprint }: RouteCandidate): {
  keys: [upstream: string, key: string, route: string];
  limits: [upstream: number, key: number, route: number];
} {
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

/** The sorted sets with a limit in which calls of these routes take slots. */
export function listSlotSets(routes: readonly CatalogRoute[]): string[] {
  const sets = routes
    .flatMap(listCandidates)
    .map(slotsOf)
    .flatMap(({ keys, limits }) => keys.filter((_, i) => limits[i]! > 0));
  return [...new Set(sets)];
}

/** Field names for the last refusal of a candidate's key: everywhere, and on this route only. */
export function refusalFields(candidate: RouteCandidate): { key: string; keyOnRoute: string } {
  const { key, keyOnRoute } = cooldownFields(candidate);
  return { key: `refused ${key}`, keyOnRoute: `refused ${keyOnRoute}` };
}

/**
 * Field names for the cooldown of a candidate's key: everywhere, on this route only, and on this route for some
 * accounts only.
 */
export function cooldownFields({ route, fingerprint }: RouteCandidate): {
  key: string;
  keyOnRoute: string;
  keyForSome: string;
} {
  const keyOnRoute = `${fingerprint} ${route.id}`;
  return { key: fingerprint, keyOnRoute, keyForSome: `some ${keyOnRoute}` };
}

import { createHash } from 'node:crypto';
import type { CatalogRoute } from '../catalog/catalog-schema.ts';

/** One way to make a call: a route, and one of its upstream's keys (null where it asks for none). */
export interface RouteWay {
  readonly route: CatalogRoute;
  readonly apiKey: string | null;
  /** Stands for the key where it must not be told: in Redis and in logs. */
  readonly fingerprint: string;
}

const fingerprints = new Map<string, string>();

/** Every way there is to a route, one for each key of its upstream. */
export function findWays(route: CatalogRoute): RouteWay[] {
  const { apiKeys } = route.upstream;
  if (apiKeys.length === 0) return [{ route, apiKey: null, fingerprint: 'none' }];
  return apiKeys.map((apiKey) => ({ route, apiKey, fingerprint: fingerprintKey(apiKey) }));
}

/** How many calls the routes take at once together, by the bounds of their upstreams, keys and routes. */
export function countSlots(routes: readonly CatalogRoute[]): number {
  const upstreams = new Map(routes.map(({ upstream }) => [upstream.name, upstream]));
  const ofUpstreams = [...upstreams.values()].map(
    ({ name, maxConcurrency, maxConcurrencyPerKey, apiKeys }) => {
      const ofKeys =
        maxConcurrencyPerKey === null ? Infinity : maxConcurrencyPerKey * Math.max(1, apiKeys.length);
      const own = routes.filter(({ upstream }) => upstream.name === name);
      const ofRoutes = own.reduce((sum, route) => sum + (route.maxConcurrency ?? Infinity), 0);
      return Math.min(maxConcurrency, ofKeys, ofRoutes);
    },
  );
  return ofUpstreams.reduce((sum, slots) => sum + slots, 0);
}

export function isSameWay(a: RouteWay, b: RouteWay): boolean {
  return a.route.id === b.route.id && a.fingerprint === b.fingerprint;
}

function fingerprintKey(apiKey: string): string {
  let fingerprint = fingerprints.get(apiKey);
  if (fingerprint === undefined) {
    fingerprint = createHash('sha256').update(apiKey).digest('hex').slice(0, 12);
    fingerprints.set(apiKey, fingerprint);
  }
  return fingerprint;
}

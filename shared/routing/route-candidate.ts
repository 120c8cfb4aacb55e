import { createHash } from 'node:crypto';
import type { CatalogRoute } from '../catalog/catalog-schema.ts';

/** A candidate for a call: a route and one of its upstream's keys (null if the upstream needs none). */
export interface RouteCandidate {
  readonly route: CatalogRoute;
  readonly apiKey: string | null;
  /** Identifies the key where the key itself must not appear: in Redis and in logs. */
  readonly fingerprint: string;
}

const fingerprints = new Map<string, string>();

/** Lists the candidates of a route, one for each key of its upstream. */
export function listCandidates(route: CatalogRoute): RouteCandidate[] {
  const { apiKeys } = route.upstream;
  if (apiKeys.length === 0) return [{ route, apiKey: null, fingerprint: 'none' }];
  return apiKeys.map((apiKey) => ({ route, apiKey, fingerprint: fingerprintKey(apiKey) }));
}

/** How many concurrent calls the routes allow in total, given the limits of their upstreams, keys and routes. */
export function countSlots(routes: readonly CatalogRoute[]): number {
  const upstreams = new Map(routes.map(({ upstream }) => [upstream.name, upstream]));
  const upstreamSlots = [...upstreams.values()].map(
    ({ name, maxConcurrency, maxConcurrencyPerKey, apiKeys }) => {
      const keyLimit =
        maxConcurrencyPerKey === null ? Infinity : maxConcurrencyPerKey * Math.max(1, apiKeys.length);
      const upstreamRoutes = routes.filter(({ upstream }) => upstream.name === name);
      const routeLimit = upstreamRoutes.reduce((sum, route) => sum + (route.maxConcurrency ?? Infinity), 0);
      return Math.min(maxConcurrency, keyLimit, routeLimit);
    },
  );
  return upstreamSlots.reduce((sum, slots) => sum + slots, 0);
}

export function isSameCandidate(a: RouteCandidate, b: RouteCandidate): boolean {
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

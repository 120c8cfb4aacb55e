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

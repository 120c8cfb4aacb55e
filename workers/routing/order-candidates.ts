import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import {
  listCandidates,
  isSameCandidate,
  type RouteCandidate,
} from '../../shared/routing/route-candidate.ts';

/**
 * Maximum number of candidates considered for one call. If there are more, a random sample by weight is used. A sample
 * has disadvantages: it may contain only keys on cooldown, and calls with different samples wait in different queues.
 * So the limit is far above any real catalog.
 */
const maxCandidates = 128;

/**
 * Returns the candidates of these routes in the order to try them: drawn without replacement by route weight, which is
 * split among the keys of a route. Omits candidates that failed for this call.
 * @param random returns a new number in [0, 1) on every call
 */
export function orderCandidates(
  routes: readonly CatalogRoute[],
  failed: readonly RouteCandidate[],
  random: () => number,
): RouteCandidate[] {
  return routes
    .flatMap((route) => {
      const candidates = listCandidates(route);
      return candidates.map((candidate) => ({ candidate, weight: route.weight / candidates.length }));
    })
    .filter(({ candidate }) => !failed.some((one) => isSameCandidate(one, candidate)))
    .map(({ candidate, weight }) => ({ candidate, rank: -Math.log(1 - random()) / weight }))
    .sort((a, b) => a.rank - b.rank)
    .slice(0, maxCandidates)
    .map(({ candidate }) => candidate);
}

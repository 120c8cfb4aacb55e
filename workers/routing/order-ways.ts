import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { findWays, isSameWay, type RouteWay } from '../../shared/routing/route-way.ts';

/**
 * More ways than these are not looked at for one call: they are a sample by weight of those there are. Far more than
 * anybody has: a sample may hold none but keys that are set aside, and whoever waits for a sample waits in a line of his
 * own.
 */
const mostWays = 128;

/**
 * The ways of these routes in the order in which to try for them: drawn without putting back, by the routes' weights,
 * which the keys of a route share. Ways that failed for this call are left out.
 * @param random in [0, 1), a new number at every call
 */
export function orderWays(
  routes: readonly CatalogRoute[],
  failed: readonly RouteWay[],
  random: () => number,
): RouteWay[] {
  return routes
    .flatMap((route) => {
      const ways = findWays(route);
      return ways.map((way) => ({ way, weight: route.weight / ways.length }));
    })
    .filter(({ way }) => !failed.some((one) => isSameWay(one, way)))
    .map(({ way, weight }) => ({ way, rank: -Math.log(1 - random()) / weight }))
    .sort((a, b) => a.rank - b.rank)
    .slice(0, mostWays)
    .map(({ way }) => way);
}

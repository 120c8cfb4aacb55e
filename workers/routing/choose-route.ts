import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';

/** One way to make a call: a route, and one of its upstream's keys (null where it needs none). */
export interface Candidate {
  readonly route: CatalogRoute;
  readonly apiKey: string | null;
}

const candidatesOf = (route: CatalogRoute): Candidate[] =>
  route.upstream.apiKeys.length === 0
    ? [{ route, apiKey: null }]
    : route.upstream.apiKeys.map((apiKey) => ({ route, apiKey }));

const isSame = (a: Candidate, b: Candidate): boolean => a.route === b.route && a.apiKey === b.apiKey;

/**
 * Picks a way by the routes' weights, leaving out those that failed for this call while another is left; among them
 * the keys of one route share its weight.
 * @param random in [0, 1)
 */
export function chooseRoute(
  routes: readonly CatalogRoute[],
  failed: readonly Candidate[],
  random: number,
): Candidate | null {
  const all = routes.flatMap(candidatesOf);
  const fresh = all.filter((candidate) => !failed.some((one) => isSame(one, candidate)));
  const choices = fresh.length > 0 ? fresh : all;
  const weightOf = ({ route }: Candidate): number =>
    route.weight / Math.max(1, route.upstream.apiKeys.length);
  let left = random * choices.reduce((sum, choice) => sum + weightOf(choice), 0);
  for (const choice of choices) {
    left -= weightOf(choice);
    if (left < 0) return choice;
  }
  return choices[choices.length - 1] ?? null;
}

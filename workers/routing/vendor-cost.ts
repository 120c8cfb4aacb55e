import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { computeCost, type Usage } from '../../shared/catalog/cost.ts';

/**
 * Computes what the vendor charges the operator for a call through this route, in nano-roubles.
 * @returns null if the catalog does not say what the vendor charges. A built-in model costs nothing
 */
export function computeVendorCost(
  { cost, upstream }: Pick<CatalogRoute, 'cost' | 'upstream'>,
  usage: Usage,
): bigint | null {
  if (cost !== null) return computeCost(cost, usage);
  return upstream.kind === 'builtin' ? 0n : null;
}

/** Adds costs. If one of them is unknown, so is the sum. */
export const addCosts = (one: bigint | null, other: bigint | null): bigint | null =>
  one === null || other === null ? null : one + other;

/**
 * Splits a cost in proportion to weights. The shares sum to it exactly, and each differs from its exact value by less
 * than a nano-rouble.
 * @param weights safe integers; if all are 0, the parts are equal
 */
export function shareCost(costNano: bigint, weights: readonly number[]): bigint[] {
  const sum = BigInt(weights.reduce((a, b) => a + b, 0));
  if (sum === 0n && weights.length > 0)
    return shareCost(
      costNano,
      weights.map(() => 1),
    );
  let [weighed, given] = [0n, 0n];
  return weights.map((weight) => {
    weighed += BigInt(weight);
    const share = (costNano * weighed) / sum - given;
    given += share;
    return share;
  });
}

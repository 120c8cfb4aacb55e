import type { CatalogModel, CatalogRoute } from '../catalog/catalog-schema.ts';
import { computeWorstCase, noUsage, type Usage, type WorstCase } from '../catalog/cost.ts';

/** The maximum that a request can use, in the units of its price. */
export interface Estimate {
  readonly model: Pick<CatalogModel, 'id' | 'pricing' | 'priceVersion' | 'rpmCoefficient'>;
  readonly promptTokens: number;
  readonly fixedNano: bigint;
  readonly nanoPerUnit: bigint;
  readonly requestedUnits: number;
  readonly minUnits: number;
  readonly sharePermille: number;
  readonly user: string | null;
  /** Whether it is a batch, whose lines name the models. */
  readonly isBatch?: true;
}

/**
 * Computes the maximum cost of this usage on any route of the model.
 * @param countCalls returns the number of sequential vendor calls that a request makes on a route; 1 by default
 */
export function findWorstCase(
  model: CatalogModel,
  usage: Partial<Usage>,
  countCalls: (route: CatalogRoute) => number = () => 1,
): WorstCase {
  const durations = model.routes.map((route) => route.upstream.timeoutMs * countCalls(route));
  return computeWorstCase(model.pricing, { ...noUsage, durationMs: Math.max(0, ...durations), ...usage });
}

/** Creates the estimate of a request that cannot run with fewer units than it requests. */
export function estimateWhole(
  { model, promptTokens, user }: Pick<Estimate, 'model' | 'promptTokens' | 'user'>,
  worst: WorstCase,
  units: number,
): Estimate {
  return {
    model,
    promptTokens,
    fixedNano: worst.fixedNano,
    nanoPerUnit: worst.nanoPerCompletionToken,
    requestedUnits: units,
    minUnits: units,
    sharePermille: 1_000,
    user,
  };
}

import type { ChargeUnit } from '../../../shared/catalog/charge-units.ts';
import { computeCost, findCharges, noUsage, type Usage } from '../../../shared/catalog/cost.ts';
import { formatRub, nanoPerRub } from '../../../shared/encoding/money.ts';
import type { Model } from '../../lib/models.ts';

export interface Workload {
  /** Tokens of each request, cached ones included. */
  readonly input: number;
  /** The part of `input` that the vendor has in its cache. */
  readonly cached: number;
  readonly output: number;
  readonly requestsPerDay: number;
}

export interface Estimate {
  readonly model: Model;
  /** In roubles, as all costs; null if it is no part of the price. */
  readonly input: number | null;
  readonly cached: number | null;
  readonly output: number | null;
  /** Exact, like the next two. */
  readonly perRequest: string;
  readonly perDay: string;
  /** Of 30 days. */
  readonly perMonth: string;
  /** Whether a request is longer than the model allows. */
  readonly isTooLong: boolean;
  readonly nanoPerRequest: bigint;
}

const daysPerMonth = 30n;

/** Whether a model's cost follows from what the calculator asks for. */
export const isCalculable = ({ type, pricing }: Model): boolean =>
  type !== 'image' && (pricing.type === 'tokens' || pricing.type === 'request');

/** Computes what each model would charge, by the gateway's own rule. The cheapest comes first. */
export function estimateCosts(models: readonly Model[], workload: Workload): Estimate[] {
  return models
    .filter(isCalculable)
    .map((model) => estimateCost(model, workload))
    .toSorted(
      (a, b) => Number(a.isTooLong) - Number(b.isTooLong) || compare(a.nanoPerRequest, b.nanoPerRequest),
    );
}

function estimateCost(model: Model, { input, cached, output, requestsPerDay }: Workload): Estimate {
  // Embeddings have no output.
  const completionTokens = model.type === 'embedding' ? 0 : output;
  const usage: Usage = { ...noUsage, promptTokens: input, cacheReadTokens: cached, completionTokens };
  const nanoPerRequest = computeCost(model.pricing, usage);
  const nanoPerDay = nanoPerRequest * BigInt(requestsPerDay);
  return {
    model,
    nanoPerRequest,
    input: costOf(model, usage, 'prompt'),
    cached: cached === 0 ? null : costOf(model, usage, 'cached_prompt'),
    output: model.type === 'embedding' ? null : costOf(model, usage, 'completion'),
    perRequest: formatRub(nanoPerRequest),
    perDay: formatRub(nanoPerDay),
    perMonth: formatRub(nanoPerDay * daysPerMonth),
    isTooLong: input + completionTokens > model.context,
  };
}

/** What one part of a request costs, in roubles. Only to be shown: the sum is computed exactly. */
function costOf({ pricing }: Model, usage: Usage, unit: ChargeUnit): number | null {
  const { parts, perPrice } = findCharges(pricing, usage);
  const part = parts.find((each) => each.unit === unit);
  if (part === undefined) return null;
  return Number(BigInt(part.quantity) * part.priceNano) / Number(perPrice * nanoPerRub);
}

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);

import type { Pricing, PriceOverride } from '../contract/models.ts';
import { nanoPerRub, parseRub } from './money.ts';

/** What a request used, in the units that a price may be asked in. Absent units count as zero. */
export interface Usage {
  /** All tokens of the prompt, cached ones included. */
  readonly promptTokens: number;
  /** Parts of promptTokens. */
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** All tokens of the answer, reasoning included. */
  readonly completionTokens: number;
  readonly images: number;
  readonly imageQuality: string | null;
  readonly imageSize: string | null;
  readonly durationMs: number;
  readonly characters: number;
}

export const noUsage: Usage = {
  promptTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  completionTokens: 0,
  images: 0,
  imageQuality: null,
  imageSize: null,
  durationMs: 0,
  characters: 0,
};

interface TokenPrices {
  readonly prompt: bigint;
  readonly completion: bigint;
  readonly cacheRead: bigint;
  readonly cacheWrite: bigint;
}

const perMillion = 1_000_000n;

/** Nano-roubles of a price of the catalog; a missing price is nothing to pay. */
function nano(price: number | null | undefined): bigint {
  if (price === null || price === undefined) return 0n;
  const value = parseRub(price);
  if (value === null || value < 0n) throw new RangeError(`${String(price)} is no price`);
  return value;
}

/** What a table of prices itself names; what every object has by its nature is no price. */
function find<T>(table: Readonly<Record<string, T>> | null | undefined, name: string): T | undefined {
  return table !== null && table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
}

/** The first price that was given. */
function firstGiven(...prices: (number | null | undefined)[]): number | null {
  return prices.find((price) => price !== null && price !== undefined) ?? null;
}

/**
 * Prices per million tokens for a prompt of this length: the second family wins over the first, the highest override
 * that the prompt reaches over both, and a missing cache price is the prompt price that holds there.
 */
function tokenPrices(pricing: Pricing, promptTokens: number): TokenPrices {
  let reached: PriceOverride | null = null;
  for (const override of pricing.overrides ?? []) {
    if (promptTokens < override.min_prompt_tokens) continue;
    if (reached === null || override.min_prompt_tokens > reached.min_prompt_tokens) reached = override;
  }
  const prompt = firstGiven(
    reached?.prompt,
    pricing.prompt,
    pricing.in_cost_per_million,
    pricing.cost_per_million,
  );
  const completion = firstGiven(
    reached?.completion,
    pricing.completion,
    pricing.out_cost_per_million,
    pricing.cost_per_million,
  );
  return {
    prompt: nano(prompt),
    completion: nano(completion),
    cacheRead: nano(firstGiven(reached?.input_cache_read, pricing.input_cache_read, prompt)),
    cacheWrite: nano(firstGiven(reached?.input_cache_write, pricing.input_cache_write, prompt)),
  };
}

function imagePrice(pricing: Pricing, quality: string | null, size: string | null): bigint {
  const byQuality = find(pricing.cost_per_image_quality, quality ?? 'standard');
  if (typeof byQuality === 'number') return nano(byQuality);
  const bySize = size === null ? undefined : find(byQuality, size);
  return nano(bySize ?? pricing.cost_per_image ?? dearestImagePrice(pricing));
}

/** Where a table of prices names neither the quality nor a price for the rest, no picture is free by accident. */
function dearestImagePrice(pricing: Pricing): number {
  const prices = Object.values(pricing.cost_per_image_quality ?? {}).flatMap((price) =>
    typeof price === 'number' ? [price] : Object.values(price),
  );
  return Math.max(0, ...prices);
}

/** Half up, for what is never negative. */
function divideRounded(numerator: bigint, denominator: bigint): bigint {
  return (numerator * 2n + denominator) / (denominator * 2n);
}

/** The exact cost in nano-roubles, rounded once, at the end, half up. Source: the pricing record of the catalog. */
export function computeCost(pricing: Pricing, usage: Usage): bigint {
  switch (pricing.type) {
    case 'tokens': {
      const prices = tokenPrices(pricing, usage.promptTokens);
      // A vendor's details can exceed their whole; what is paid for at all is never more than the whole.
      const written = Math.min(usage.cacheWriteTokens, usage.promptTokens);
      const read = Math.min(usage.cacheReadTokens, usage.promptTokens - written);
      const numerator =
        BigInt(usage.promptTokens - read - written) * prices.prompt +
        BigInt(read) * prices.cacheRead +
        BigInt(written) * prices.cacheWrite +
        BigInt(usage.completionTokens) * prices.completion;
      return divideRounded(numerator, perMillion);
    }
    case 'image':
      return BigInt(usage.images) * imagePrice(pricing, usage.imageQuality, usage.imageSize);
    case 'time':
      return divideRounded(
        BigInt(Math.max(0, Math.round(usage.durationMs))) * nano(pricing.cost_per_second),
        1_000n,
      );
    case 'characters':
      return divideRounded(BigInt(usage.characters) * nano(pricing.cost_per_million), perMillion);
    case 'request':
      return nano(pricing.cost_per_request);
    default:
      return pricing.type satisfies never;
  }
}

/** What a request reserves: a part that is certain, and a price for each token of an answer not yet bounded. */
export interface WorstCase {
  readonly fixedNano: bigint;
  /** Rounded up, so that a bound on tokens is a bound on money. */
  readonly nanoPerCompletionToken: bigint;
}

/** How much longer than by our count a vendor may find a prompt before an override's price is left unreserved. */
const vendorCountSlack = 1.25;

/**
 * The most that a request of this usage can cost, whichever override its vendor's own count of the prompt reaches.
 * `usage.completionTokens` is left open: the reservation bounds it.
 */
export function computeWorstCase(pricing: Pricing, usage: Usage): WorstCase {
  if (pricing.type !== 'tokens')
    return { fixedNano: computeCost(pricing, usage), nanoPerCompletionToken: 0n };
  // A vendor may count a prompt longer than we do, and so reach an override that we saw ahead of it.
  const promptBound = Math.ceil(usage.promptTokens * vendorCountSlack);
  const ahead = (pricing.overrides ?? []).map((override) => override.min_prompt_tokens);
  const lengths = [
    usage.promptTokens,
    ...ahead.filter((min) => min > usage.promptTokens && min <= promptBound),
  ];
  const tiers = lengths.map((length) => tokenPrices(pricing, length));
  const max = (values: bigint[]): bigint => values.reduce((a, b) => (a > b ? a : b));
  const perPromptToken = max(tiers.flatMap((tier) => [tier.prompt, tier.cacheRead, tier.cacheWrite]));
  const perCompletionToken = max(tiers.map((tier) => tier.completion));
  return {
    fixedNano: divideUp(BigInt(usage.promptTokens) * perPromptToken, perMillion),
    nanoPerCompletionToken: divideUp(perCompletionToken, perMillion),
  };
}

function divideUp(numerator: bigint, denominator: bigint): bigint {
  return (numerator + denominator - 1n) / denominator;
}

/** Prices that a catalog must not have: more than nine decimals, or above what a balance can hold. */
export function findBadPrices(pricing: Pricing): string[] {
  const bad: string[] = [];
  const check = (name: string, price: unknown): void => {
    if (typeof price === 'number') {
      const value = parseRub(price);
      if (value === null || value < 0n || value > 9_000_000n * nanoPerRub) bad.push(name);
    } else if (price !== null && typeof price === 'object') {
      for (const [key, inner] of Object.entries(price)) {
        if (key !== 'min_prompt_tokens') check(`${name}.${key}`, inner);
      }
    }
  };
  for (const [name, value] of Object.entries(pricing)) check(name, value);
  return bad;
}

import type { Pricing, PriceOverride } from '../contract/models.ts';
import { nanoPerRub, parseRub } from '../encoding/money.ts';
import type { ChargeUnit } from './charge-units.ts';

/** The usage of a request, in every unit that a price may refer to. Units that do not apply are 0. */
export interface Usage {
  /** All prompt tokens, including cached ones. */
  readonly promptTokens: number;
  /** Parts of `promptTokens`. */
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** All completion tokens, including reasoning. */
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

/** The prices of the catalog, of which there are few, so that each is parsed once. */
const nanoPrices = new Map<number, bigint>();
const maxKnownPrices = 10_000;

/** Converts a catalog price to nano-roubles. A missing price is 0. */
function nano(price: number | null | undefined): bigint {
  if (price === null || price === undefined) return 0n;
  const known = nanoPrices.get(price);
  if (known !== undefined) return known;
  const value = parseRub(price);
  if (value === null || value < 0n) throw new RangeError(`${String(price)} is not a price`);
  if (nanoPrices.size >= maxKnownPrices) nanoPrices.clear();
  nanoPrices.set(price, value);
  return value;
}

/** Looks up a price that the table itself defines, ignoring inherited object properties. */
function find<T>(table: Readonly<Record<string, T>> | null | undefined, name: string): T | undefined {
  return table !== null && table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
}

/** The first price that is set. */
function firstSet(...prices: (number | null | undefined)[]): number | null {
  return prices.find((price) => price !== null && price !== undefined) ?? null;
}

/**
 * Prices per million tokens for a prompt of this length. The highest override that the prompt reaches takes precedence,
 * then `prompt` and `completion`, then `in_cost_per_million` and `out_cost_per_million`, then `cost_per_million`. A
 * missing cache price defaults to the prompt price in effect.
 */
function tokenPrices(pricing: Pricing, promptTokens: number): TokenPrices {
  let reached: PriceOverride | null = null;
  for (const override of pricing.overrides ?? []) {
    if (promptTokens < override.min_prompt_tokens) continue;
    if (reached === null || override.min_prompt_tokens > reached.min_prompt_tokens) reached = override;
  }
  let known = knownTokenPrices.get(pricing);
  if (known === undefined) {
    known = new Map();
    knownTokenPrices.set(pricing, known);
  }
  let prices = known.get(reached);
  if (prices === undefined) {
    prices = readTokenPrices(pricing, reached);
    known.set(reached, prices);
  }
  return prices;
}

/** By the override that applies. Models may share overrides, and have other prices beside them. */
const knownTokenPrices = new WeakMap<Pricing, Map<PriceOverride | null, TokenPrices>>();

function readTokenPrices(pricing: Pricing, reached: PriceOverride | null): TokenPrices {
  const prompt = firstSet(
    reached?.prompt,
    pricing.prompt,
    pricing.in_cost_per_million,
    pricing.cost_per_million,
  );
  const completion = firstSet(
    reached?.completion,
    pricing.completion,
    pricing.out_cost_per_million,
    pricing.cost_per_million,
  );
  return {
    prompt: nano(prompt),
    completion: nano(completion),
    cacheRead: nano(firstSet(reached?.input_cache_read, pricing.input_cache_read, prompt)),
    cacheWrite: nano(firstSet(reached?.input_cache_write, pricing.input_cache_write, prompt)),
  };
}

function imagePrice(pricing: Pricing, quality: string | null, size: string | null): bigint {
  const byQuality = find(pricing.cost_per_image_quality, quality ?? 'standard');
  if (typeof byQuality === 'number') return nano(byQuality);
  const bySize = size === null ? undefined : find(byQuality, size);
  return nano(bySize ?? pricing.cost_per_image ?? highestImagePrice(pricing));
}

/**
 * If the table has neither this quality nor a default price, use the highest price, so that no image is free by
 * accident.
 */
function highestImagePrice(pricing: Pricing): number {
  const prices = Object.values(pricing.cost_per_image_quality ?? {}).flatMap((price) =>
    typeof price === 'number' ? [price] : Object.values(price),
  );
  return Math.max(0, ...prices);
}

/** Rounds half up. For non-negative numbers only. */
function divideRounded(numerator: bigint, denominator: bigint): bigint {
  return (numerator * 2n + denominator) / (denominator * 2n);
}

/** A part of a request's usage that has its own price. */
export interface Charge {
  readonly unit: ChargeUnit;
  /** Of a million tokens or characters, or of one of anything else. */
  readonly priceNano: bigint;
  /** Tokens, characters, images, milliseconds or requests. */
  readonly quantity: number;
}

/** The parts of a request's usage, and how many of their quantities a price is for. */
export interface Charges {
  readonly parts: readonly Charge[];
  readonly perPrice: bigint;
}

/** Splits the usage of a request into the parts that it is charged by. Source: the catalog's pricing record. */
export function findCharges(pricing: Pricing, usage: Usage): Charges {
  const chargeOne = (unit: ChargeUnit, priceNano: bigint, quantity: number, perPrice = 1n): Charges => ({
    parts: [{ unit, priceNano, quantity }],
    perPrice,
  });
  switch (pricing.type) {
    case 'tokens': {
      const prices = tokenPrices(pricing, usage.promptTokens);
      // The parts that a vendor reports can exceed the total that it reports. Never charge for more than the total.
      const written = Math.min(usage.cacheWriteTokens, usage.promptTokens);
      const read = Math.min(usage.cacheReadTokens, usage.promptTokens - written);
      return {
        parts: [
          { unit: 'prompt', priceNano: prices.prompt, quantity: usage.promptTokens - read - written },
          { unit: 'cached_prompt', priceNano: prices.cacheRead, quantity: read },
          { unit: 'cache_write', priceNano: prices.cacheWrite, quantity: written },
          { unit: 'completion', priceNano: prices.completion, quantity: usage.completionTokens },
        ],
        perPrice: perMillion,
      };
    }
    case 'image':
      return chargeOne('image', imagePrice(pricing, usage.imageQuality, usage.imageSize), usage.images);
    case 'time': {
      const durationMs = Math.max(0, Math.round(usage.durationMs));
      return chargeOne('second', nano(pricing.cost_per_second), durationMs, 1_000n);
    }
    case 'characters':
      return chargeOne('characters', nano(pricing.cost_per_million), usage.characters, perMillion);
    case 'request':
      return chargeOne('request', nano(pricing.cost_per_request), 1);
    default:
      return pricing.type satisfies never;
  }
}

/** The exact cost in nano-roubles, rounded half up once, at the end. */
export function computeCost(pricing: Pricing, usage: Usage): bigint {
  const { parts, perPrice } = findCharges(pricing, usage);
  let sum = 0n;
  for (const { priceNano, quantity } of parts) sum += BigInt(quantity) * priceNano;
  return divideRounded(sum, perPrice);
}

/** The maximum cost of a request: a fixed part, and a price per completion token, whose number is not yet bounded. */
export interface WorstCase {
  readonly fixedNano: bigint;
  /** Rounded up, so that a bound on tokens is a bound on money. */
  readonly nanoPerCompletionToken: bigint;
}

/**
 * A vendor may count up to this many times as many prompt tokens as we do. The reservation covers the price overrides
 * that such a count reaches.
 */
const maxVendorCountRatio = 1.25;

/**
 * The maximum cost of a request with this usage, whichever price override the vendor's own token count reaches.
 * `usage.completionTokens` is ignored; the reservation bounds it.
 */
export function computeWorstCase(pricing: Pricing, usage: Usage): WorstCase {
  if (pricing.type !== 'tokens')
    return { fixedNano: computeCost(pricing, usage), nanoPerCompletionToken: 0n };
  // A vendor may count more tokens than we do and reach a price override that is just above our count.
  const promptBound = Math.ceil(usage.promptTokens * maxVendorCountRatio);
  let perPromptToken = 0n;
  let perCompletionToken = 0n;
  const include = (promptTokens: number): void => {
    const { prompt, cacheRead, cacheWrite, completion } = tokenPrices(pricing, promptTokens);
    for (const price of [prompt, cacheRead, cacheWrite]) if (price > perPromptToken) perPromptToken = price;
    if (completion > perCompletionToken) perCompletionToken = completion;
  };
  include(usage.promptTokens);
  for (const { min_prompt_tokens: min } of pricing.overrides ?? [])
    if (min > usage.promptTokens && min <= promptBound) include(min);
  return {
    fixedNano: divideUp(BigInt(usage.promptTokens) * perPromptToken, perMillion),
    nanoPerCompletionToken: divideUp(perCompletionToken, perMillion),
  };
}

function divideUp(numerator: bigint, denominator: bigint): bigint {
  return (numerator + denominator - 1n) / denominator;
}

/** Prices that a catalog must not contain: more than nine decimals, negative, or above the largest balance. */
export function findInvalidPrices(pricing: Pricing): string[] {
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

import type { ModelType, PricingType } from '../contract/models.ts';
import { defaultImageSize } from '../contract/image-request.ts';
import { findInvalidPrices } from './cost.ts';
import { isFixedPrice } from './fixed-price.ts';
import type { CostEntry, ModelEntry } from './catalog-schema.ts';
import { isRecord } from '../encoding/json-record.ts';
import { type CatalogIssue } from './catalog-issue.ts';
import { listQualities, listSizes } from './image-options.ts';
import type { Location } from './yaml-source.ts';

/** What is measured for each model type. A price for anything else would never be charged. */
const measuredBy: Record<ModelType, readonly PricingType[]> = {
  chat: ['tokens', 'time', 'request'],
  vision: ['tokens', 'time', 'request'],
  image: ['image', 'tokens', 'time', 'characters', 'request'],
  embedding: ['tokens', 'time', 'characters', 'request'],
};

/** Finds errors in a price record that matches the schema. */
export function checkPricing(pricing: CostEntry, at: Location): CatalogIssue[] {
  const prices = { ...pricing, date_of_use: '', free_requests: false };
  const issues: CatalogIssue[] = findInvalidPrices(prices).map((name) => ({
    location: [...at, ...splitPath(pricing, name)],
    message: 'must have at most nine decimals and be at most 9000000',
  }));
  const reached = new Set<number>();
  for (const [i, { min_prompt_tokens: min }] of (pricing.overrides ?? []).entries()) {
    if (reached.has(min)) {
      const location = [...at, 'overrides', i, 'min_prompt_tokens'];
      issues.push({ location, message: 'repeats the value of an override above' });
    }
    reached.add(min);
  }
  return issues;
}

/** Resolves a dotted name to a path. A key of the price table may itself contain dots. */
function splitPath(value: unknown, name: string): Location {
  if (typeof value !== 'object' || value === null) return [];
  const key = Object.keys(value).find((key) => name === key || name.startsWith(`${key}.`));
  if (key === undefined) return [];
  const tail = splitPath((value as Record<string, unknown>)[key], name.slice(key.length + 1));
  return [Array.isArray(value) ? Number(key) : key, ...tail];
}

const tokenPrices = `in_cost_per_million out_cost_per_million cost_per_million
  prompt completion input_cache_read input_cache_write overrides`;
const pricesOfType: Record<PricingType, readonly string[]> = {
  tokens: tokenPrices.split(/\s+/),
  image: ['cost_per_image', 'cost_per_image_quality'],
  time: ['cost_per_second'],
  characters: ['cost_per_million'],
  request: ['cost_per_request'],
};
const allPrices = new Set(Object.values(pricesOfType).flat());

/** Finds prices that are valid but probably not intended: they make requests free, or cost the operator nothing. */
export function findSuspiciousPrices(model: ModelEntry, at: Location): CatalogIssue[] {
  const ofCosts = model.routes.flatMap(({ cost }, i) =>
    cost === undefined
      ? []
      : findSuspicious(cost, model, [...at, 'routes', i, 'cost'], 'so calls cost the operator nothing'),
  );
  return [...findSuspicious(model.pricing, model, [...at, 'pricing'], 'so requests are free'), ...ofCosts];
}

function findSuspicious(
  pricing: CostEntry,
  model: ModelEntry,
  location: Location,
  effect: string,
): CatalogIssue[] {
  const used = pricesOfType[pricing.type];
  const given = Object.entries(pricing)
    .filter(([name, price]) => allPrices.has(name) && price !== null)
    .map(([name]) => name);
  const issues: CatalogIssue[] = given
    .filter((name) => !used.includes(name))
    .map((name) => ({
      location: [...location, name],
      message: `has no effect: ${location.at(-1)}.type is ${pricing.type}`,
    }));
  if (given.some((name) => used.includes(name)) && !measuredBy[model.type].includes(pricing.type)) {
    const measured = measuredBy[model.type].join(', ');
    issues.push({
      location: [...location, 'type'],
      message:
        `is not supported for models of type ${model.type}, ${effect}; ` +
        `the supported types are ${measured}`,
    });
  }
  if (!given.some((name) => used.includes(name))) {
    issues.push({
      location,
      message: `has no price of type ${pricing.type}; set it to 0 if that is intended`,
    });
  } else if (pricing.type === 'image' && (pricing.cost_per_image ?? null) === null) {
    const free = findFreeImages(pricing, model);
    if (free.length > 0) {
      issues.push({
        location,
        message: `makes these images free: ${free.join(', ')}; set cost_per_image to cover them`,
      });
    }
  }
  return issues;
}

/**
 * Finds image models with a fixed price whose entry does not say which sizes or qualities it covers.
 * @param isOwn whether all routes of the model lead to models that come with the gateway, which have no vendor's price
 */
export function findUnlistedOptions(model: ModelEntry, at: Location, isOwn: boolean): CatalogIssue[] {
  if (model.type !== 'image' || isOwn || !isFixedPrice(model.pricing)) return [];
  const lacksSize = listSizes(model).length === 0;
  const lacksQuality = model.image_quality === undefined && listQualities(model).length === 0;
  const missing = [...(lacksSize ? ['size'] : []), ...(lacksQuality ? ['image_quality'] : [])];
  if (missing.length === 0) return [];
  const effects = [
    ...(lacksSize ? [`only ${defaultImageSize} can be requested`] : []),
    ...(lacksQuality
      ? [
          'no quality can be requested, and the vendor’s default is used (set image_quality: null if that is intended)',
        ]
      : []),
  ];
  return [{ location: at, message: `lists no ${missing.join(' and no ')}: ${effects.join('; ')}` }];
}

function findFreeImages(pricing: CostEntry, { size, image_quality: option }: ModelEntry): string[] {
  const qualities = option?.choices ?? [option?.default ?? 'standard'];
  return qualities.flatMap((quality) => {
    const price = pricing.cost_per_image_quality?.[quality];
    if (price === undefined) return [quality];
    return isRecord(price)
      ? (size ?? []).filter((size) => price[size] === undefined).map((size) => `${quality} ${size}`)
      : [];
  });
}

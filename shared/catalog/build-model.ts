import { createHash } from 'node:crypto';
import type { Model, Pricing } from '../contract/models.ts';
import { defaultEncoding } from './count-tokens.ts';
import { findOpenAiProfile, listUnsupportedFields } from './openai-profile.ts';
import type {
  CatalogModel,
  CatalogRoute,
  CatalogUpstream,
  ModelEntry,
  RouteEntry,
  PricingEntry,
} from './catalog-schema.ts';

/** OpenAI's high detail of a 2048×768 image: eight tiles of 170 plus 85, the maximum that its larger models charge. */
const defaultTokensPerImage = 1_445;
/** A web search by the vendor seldom adds more tokens than this to a prompt. */
const defaultTokensPerSearch = 16_000;

type Prices = Omit<PricingEntry, 'since'>;

/**
 * Builds a model from a valid catalog entry. Skips routes whose upstream is not usable. `findPriceDay` returns the
 * start day of a price version if the file gives none.
 */
export function buildModel(
  entry: ModelEntry,
  upstreams: ReadonlyMap<string, CatalogUpstream>,
  findPriceDay: (priceVersion: string) => string,
): CatalogModel {
  const { since, ...prices } = entry.pricing;
  const priceVersion = hashPrices(prices);
  const pricing = completePricing(prices, since ?? findPriceDay(priceVersion));
  const routes = entry.routes.flatMap((route): CatalogRoute[] => {
    const upstream = upstreams.get(route.upstream);
    return upstream === undefined ? [] : [buildRoute(entry, route, upstream)];
  });
  return {
    id: entry.id,
    aliases: entry.aliases,
    type: entry.type,
    context: entry.context,
    maxOutputTokens: entry.max_output_tokens ?? (entry.type === 'embedding' ? 0 : entry.context),
    tokensPerImage: entry.tokens_per_picture ?? defaultTokensPerImage,
    tokensPerPage: entry.tokens_per_page ?? entry.tokens_per_picture ?? defaultTokensPerImage,
    tokensPerSearch: entry.tokens_per_search ?? defaultTokensPerSearch,
    alwaysMaySearch: entry.web_search === 'always',
    tokenizer: entry.tokenizer ?? defaultEncoding,
    hasTokenizer: entry.tokenizer !== undefined,
    specialTokens: entry.special_tokens ?? null,
    dimensions: readDimensions(entry),
    embeddingCache: readEmbeddingCache(entry),
    sizes: entry.size ?? null,
    rpmCoefficient: entry.rpm_coefficient,
    pricing,
    priceVersion,
    routes,
    published: publishModel(entry, pricing),
  };
}

export function buildRoute(entry: ModelEntry, route: RouteEntry, upstream: CatalogUpstream): CatalogRoute {
  const model = route.model ?? entry.id;
  const profile = findOpenAiProfile(upstream.profile, upstream.baseUrl, model);
  const unsupported = upstream.kind === 'openai' ? listUnsupportedFields(profile) : [];
  const drops = new Set([
    ...unsupported.filter((field) => !route.accepts.includes(field)),
    ...upstream.drops,
    ...route.drops,
  ]);
  return {
    id: `${entry.id} ${upstream.name} ${model}`,
    upstream,
    model,
    weight: route.weight,
    maxConcurrency: route.maxConcurrency ?? null,
    thinking: route.thinking ?? null,
    profile,
    drops,
    accepts: route.accepts,
    onDisconnect: route.onDisconnect,
    maxTokens: route.maxTokens,
    cost: route.cost === undefined ? null : completePricing({ ...route.cost, free_requests: false }, ''),
  };
}

function readDimensions({ dimensions }: ModelEntry): CatalogModel['dimensions'] {
  if (dimensions === undefined) return null;
  const { default: length, choices } = dimensions;
  const max = dimensions.max ?? (choices === undefined ? undefined : Math.max(...choices));
  return {
    default: length,
    adjustable: dimensions.adjustable ?? max !== undefined,
    ...(choices === undefined ? {} : { choices }),
    ...(max === undefined ? {} : { max }),
  };
}

function readEmbeddingCache({ embeddingCache }: ModelEntry): CatalogModel['embeddingCache'] {
  return embeddingCache === undefined
    ? null
    : { ttlSeconds: embeddingCache.ttl, maxBytes: embeddingCache.maxBytes };
}

function publishModel(entry: ModelEntry, pricing: Pricing): Omit<Model, 'active'> {
  const { created } = entry;
  const toOption = (option: ModelEntry['reasoning_effort']): Model['reasoning_effort'] =>
    option ? { default: option.default ?? null, choices: option.choices ?? null } : null;
  return {
    id: entry.id,
    object: entry.object,
    created: typeof created === 'string' ? Date.parse(created) / 1_000 : created,
    context: entry.context,
    size: entry.size ?? null,
    type: entry.type,
    name: entry.name ?? null,
    description: entry.description ?? null,
    img: entry.img ?? null,
    reasoning: entry.reasoning ?? null,
    reasoning_effort: toOption(entry.reasoning_effort),
    image_quality: toOption(entry.image_quality),
    web_search: entry.web_search === 'always' ? true : (entry.web_search ?? null),
    input_modalities: entry.input_modalities ?? null,
    output_modalities: entry.output_modalities ?? null,
    supported_file_types: entry.supported_file_types ?? null,
    max_image_count: entry.max_image_count ?? null,
    max_file_count: entry.max_file_count ?? null,
    architecture: entry.architecture ?? null,
    quantization: entry.quantization ?? null,
    pricing,
    owned_by: entry.owned_by,
    rpm_coefficient: entry.rpm_coefficient,
  };
}

function completePricing(prices: Prices, day: string): Pricing {
  return {
    date_of_use: day,
    type: prices.type,
    in_cost_per_million: prices.in_cost_per_million ?? null,
    out_cost_per_million: prices.out_cost_per_million ?? null,
    cost_per_million: prices.cost_per_million ?? null,
    cost_per_image: prices.cost_per_image ?? null,
    cost_per_image_quality: prices.cost_per_image_quality ?? null,
    cost_per_second: prices.cost_per_second ?? null,
    cost_per_request: prices.cost_per_request ?? null,
    prompt: prices.prompt ?? null,
    completion: prices.completion ?? null,
    input_cache_read: prices.input_cache_read ?? null,
    input_cache_write: prices.input_cache_write ?? null,
    overrides: prices.overrides ?? null,
    free_requests: prices.free_requests,
  };
}

/** Returns a short hash of the prices that ignores notation: field order, nulls and the day do not matter. */
function hashPrices(prices: Prices): string {
  const canonical = JSON.stringify(prices, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const present = Object.entries(value).filter(([, inner]) => inner !== null);
    return Object.fromEntries(present.sort(([a], [b]) => (a < b ? -1 : 1)));
  });
  return createHash('sha256').update(canonical).digest('hex').slice(0, 12);
}

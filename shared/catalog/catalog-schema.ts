import { Type, type Static } from 'typebox';
import { Nullable, StringEnum } from '../contract/fields.ts';
import { ModelType, Pricing, type Model } from '../contract/models.ts';
import { encodingNames, type EncodingName } from '../pricing/count-tokens.ts';

/** What is known of a dialect before an upstream of it is configured. A new dialect is a line here. */
export interface UpstreamKindRules {
  /** `required`, `none` where nothing is called over the network, or the vendor's own address. */
  readonly baseUrl: 'required' | 'none' | { readonly default: string };
  /** What it can be asked for at all. */
  readonly serves: readonly ModelType[];
  /** The most that one embedding call may carry, unless the upstream sets its own. */
  readonly maxBatchInputs: number;
  readonly maxBatchTokens: number;
  /** Calls under way at once, unless the upstream sets its own. */
  readonly maxConcurrency: number;
  /** Whether its vendors fetch pictures by their links themselves, unless the upstream says otherwise. */
  readonly imageUrls: 'pass' | 'fetch';
}

const everything = ['chat', 'vision', 'image', 'embedding'] as const;
const openAiBatch = { maxBatchInputs: 2048, maxBatchTokens: 300_000 };
const usualConcurrency = { maxConcurrency: 64 };

export const upstreamKinds = {
  openai: {
    baseUrl: 'required',
    serves: everything,
    ...openAiBatch,
    ...usualConcurrency,
    imageUrls: 'pass',
  },
  anthropic: {
    baseUrl: { default: 'https://api.anthropic.com' },
    serves: ['chat', 'vision'],
    ...openAiBatch,
    ...usualConcurrency,
    imageUrls: 'pass',
  },
  gemini: {
    baseUrl: { default: 'https://generativelanguage.googleapis.com' },
    serves: everything,
    maxBatchInputs: 100,
    maxBatchTokens: 300_000,
    ...usualConcurrency,
    imageUrls: 'fetch',
  },
  // It has no vendor whose limits it must keep to: this is a bound for the sake of having one.
  builtin: {
    baseUrl: 'none',
    serves: everything,
    ...openAiBatch,
    maxConcurrency: 16_384,
    imageUrls: 'pass',
  },
} as const satisfies Record<string, UpstreamKindRules>;

export type UpstreamKind = keyof typeof upstreamKinds;

/** An upstream that can be called: it has every key it needs. */
export interface CatalogUpstream {
  readonly name: string;
  readonly kind: UpstreamKind;
  /** Without its last slash; empty for `builtin`. */
  readonly baseUrl: string;
  /** Empty where the server asks for none. */
  readonly apiKeys: readonly string[];
  /** Calls under way at once, of all workers together. */
  readonly maxConcurrency: number;
  /** The same for each of its keys; null sets no bound of their own. */
  readonly maxConcurrencyPerKey: number | null;
  /** The whole call. */
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly firstByteTimeoutMs: number;
  readonly streamFirstByteTimeoutMs: number;
  readonly betweenChunksTimeoutMs: number;
  readonly drops: readonly string[];
  readonly maxBatchInputs: number;
  readonly maxBatchTokens: number;
  /** Whether the vendor is given the links of pictures, or their bytes. */
  readonly imageUrls: 'pass' | 'fetch';
  /** How long a stream is read on for its usage after the caller left; zero ends it at once. */
  readonly disconnectGraceMs: number;
}

/**
 * What becomes of a stream whose caller left; whole answers are read to their end. `cancel` ends it once its usage is known, or after
 * `disconnectGraceMs`. `drain` reads it to its end, for vendors that bill the whole answer anyway.
 */
export type OnDisconnect = 'cancel' | 'drain';

/** What a bound on tokens holds for at a vendor: all that is generated, or the answer without its reasoning. */
export type MaxTokensScope = 'all' | 'answer';

export interface CatalogRoute {
  /** Names the route among all of the catalog, and stays the same while it leads to the same place. */
  readonly id: string;
  readonly upstream: CatalogUpstream;
  /** The model's name at the upstream. */
  readonly model: string;
  readonly weight: number;
  /** Calls under way at once, of all workers together; null sets no bound of its own. */
  readonly maxConcurrency: number | null;
  /** How the vendor's model is told to reason; null goes by its name. */
  readonly thinking: 'budget' | 'effort' | null;
  /** Request fields that are left out: the route's and its upstream's together. */
  readonly drops: ReadonlySet<string>;
  readonly onDisconnect: OnDisconnect;
  readonly maxTokens: MaxTokensScope;
}

export interface CatalogDimensions {
  readonly default: number;
  readonly adjustable: boolean;
  /** The only lengths there are; without them every length from 1 to the largest. */
  readonly choices?: readonly number[];
  /** The largest length, where that is not `default`: the file's bound, or the largest of the choices. */
  readonly max?: number;
}

/** How long vectors are kept, and how much of Redis they may take. */
export interface CatalogEmbeddingCache {
  readonly ttlSeconds: number;
  /** Of all accounts together. */
  readonly maxBytes: number;
}

export interface CatalogModel {
  readonly id: string;
  readonly aliases: readonly string[];
  readonly type: ModelType;
  readonly context: number;
  /** Zero for embedding models. */
  readonly maxOutputTokens: number;
  /** What one picture of a message counts in the reservation. */
  readonly tokensPerPicture: number;
  /** What one page of a PDF counts in the reservation, beside its text: vendors look at it as a picture. */
  readonly tokensPerPage: number;
  /** The encoding that its texts are counted by here. */
  readonly tokenizer: EncodingName;
  /** Whether that is the vendor's own, as the catalog says. */
  readonly hasTokenizer: boolean;
  /** What the vendor adds to each input of an embedding; null where the catalog does not say. */
  readonly specialTokens: number | null;
  /** What the results of a web search count in the reservation. */
  readonly tokensPerSearch: number;
  /** Whether it searches, or runs tools at its vendor, without being asked to. */
  readonly searchesUnasked: boolean;
  /** Set for embedding models, and for no others. */
  readonly dimensions: CatalogDimensions | null;
  /** Null where every input goes to the model. */
  readonly embeddingCache: CatalogEmbeddingCache | null;
  readonly sizes: readonly string[] | null;
  readonly rpmCoefficient: number;
  readonly pricing: Pricing;
  /** Changes when, and only when, what a request costs may change. */
  readonly priceVersion: string;
  /** Only those that can be used now; none means that the model is inactive. */
  readonly routes: readonly CatalogRoute[];
  readonly published: Omit<Model, 'active'>;
}

export interface Catalog {
  readonly models: readonly CatalogModel[];
  /** Only those that can be used now. */
  readonly upstreams: readonly CatalogUpstream[];
  readonly warnings: readonly string[];
  /** What keeps the upstreams that models name from being used, by the id of the model: `OPENAI_API_KEY is not set`. */
  readonly faults: ReadonlyMap<string, readonly string[]>;
  find(idOrAlias: string): CatalogModel | undefined;
}

const positiveInteger = (options: object = {}) => Type.Integer({ minimum: 1, ...options });
const text = () => Type.Optional(Nullable(Type.String({ minLength: 1 })));
const texts = () => Type.Optional(Nullable(Type.Array(Type.String({ minLength: 1 }), { uniqueItems: true })));
const flag = () => Type.Optional(Nullable(Type.Boolean()));
const drops = () => Type.Array(Type.String({ minLength: 1 }), { default: [] });

/** What a schema cannot say of an entry (the form of ids, keys and addresses too) is in check-catalog. */
export const UpstreamEntry = Type.Object({
  kind: StringEnum(Object.keys(upstreamKinds) as UpstreamKind[]),
  baseUrl: Type.Optional(Type.String()),
  apiKeys: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
  maxConcurrency: Type.Optional(positiveInteger()),
  maxConcurrencyPerKey: Type.Optional(positiveInteger()),
  timeoutMs: positiveInteger({ default: 120_000 }),
  connectTimeoutMs: positiveInteger({ default: 10_000 }),
  // An answer that is not streamed sends its first byte when all of it is made, so the whole call bounds it.
  firstByteTimeoutMs: Type.Optional(positiveInteger()),
  streamFirstByteTimeoutMs: Type.Optional(positiveInteger()),
  betweenChunksTimeoutMs: positiveInteger({ default: 60_000 }),
  drops: drops(),
  maxBatchInputs: Type.Optional(positiveInteger()),
  maxBatchTokens: Type.Optional(positiveInteger()),
  imageUrls: Type.Optional(StringEnum(['pass', 'fetch'])),
  // A worker that is asked to stop has 28 s for all that it runs.
  disconnectGraceMs: Type.Integer({ minimum: 0, maximum: 20_000, default: 2_000 }),
});
export type UpstreamEntry = Static<typeof UpstreamEntry>;

export const RouteEntry = Type.Object({
  upstream: Type.String({ minLength: 1 }),
  model: Type.Optional(Type.String({ minLength: 1 })),
  weight: Type.Number({ exclusiveMinimum: 0, default: 1 }),
  maxConcurrency: Type.Optional(positiveInteger()),
  thinking: Type.Optional(StringEnum(['budget', 'effort'])),
  drops: drops(),
  onDisconnect: StringEnum(['cancel', 'drain'], { default: 'cancel' }),
  maxTokens: StringEnum(['all', 'answer'], { default: 'all' }),
});
export type RouteEntry = Static<typeof RouteEntry>;

export const PricingEntry = Type.Interface([Type.Omit(Pricing, ['date_of_use'])], {
  since: Type.Optional(Type.String({ format: 'date' })),
});
export type PricingEntry = Static<typeof PricingEntry>;

const OptionSpecEntry = Type.Object({
  default: Type.Optional(Nullable(Type.String())),
  choices: Type.Optional(Nullable(Type.Array(Type.String(), { minItems: 1, uniqueItems: true }))),
});

const DimensionsEntry = Type.Object({
  default: positiveInteger(),
  adjustable: Type.Optional(Type.Boolean()),
  choices: Type.Optional(Type.Array(positiveInteger(), { minItems: 1, uniqueItems: true })),
  max: Type.Optional(positiveInteger()),
});

const EmbeddingCacheEntry = Type.Object({
  ttl: Type.Integer({ minimum: 1, maximum: 30 * 86_400, default: 86_400 }),
  // Less would not hold one request's vectors.
  maxBytes: Type.Integer({ minimum: 1_000_000, default: 100_000_000 }),
});

/** A model under the spec's names, and what only the gateway needs to know of it. */
export const ModelEntry = Type.Object({
  id: Type.String(),
  aliases: Type.Array(Type.String(), { default: [] }),
  type: ModelType,
  context: positiveInteger(),
  max_output_tokens: Type.Optional(positiveInteger()),
  tokens_per_picture: Type.Optional(positiveInteger()),
  tokens_per_page: Type.Optional(positiveInteger()),
  tokens_per_search: Type.Optional(positiveInteger()),
  tokenizer: Type.Optional(StringEnum([...encodingNames])),
  special_tokens: Type.Optional(Type.Integer({ minimum: 0, maximum: 64 })),
  dimensions: Type.Optional(DimensionsEntry),
  embeddingCache: Type.Optional(EmbeddingCacheEntry),
  pricing: PricingEntry,
  routes: Type.Array(RouteEntry, { minItems: 1 }),

  object: StringEnum(['model', 'proxy'], { default: 'model' }),
  created: Type.Unsafe<number | string>({
    anyOf: [
      { type: 'integer', minimum: 0 },
      { type: 'string', format: 'date' },
    ],
    default: 0,
  }),
  owned_by: Type.String({ default: 'model-gateway', minLength: 1 }),
  rpm_coefficient: positiveInteger({ default: 1 }),
  name: text(),
  description: text(),
  img: text(),
  size: texts(),
  reasoning: flag(),
  reasoning_effort: Type.Optional(Nullable(OptionSpecEntry)),
  image_quality: Type.Optional(Nullable(OptionSpecEntry)),
  web_search: Type.Optional(
    Type.Unsafe<boolean | 'always' | null>({
      type: ['boolean', 'string', 'null'],
      enum: [true, false, 'always', null],
    }),
  ),
  input_modalities: texts(),
  output_modalities: texts(),
  supported_file_types: texts(),
  max_image_count: Type.Optional(Nullable(positiveInteger({ maximum: 4 }))),
  max_file_count: Type.Optional(Nullable(Type.Integer({ minimum: 0 }))),
  architecture: text(),
  quantization: text(),
});
export type ModelEntry = Static<typeof ModelEntry>;

/** The file's outline; its entries are checked one by one, so that the faults of one do not hide another's. */
export const CatalogOutline = Type.Object({
  upstreams: Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
  models: Type.Unsafe<unknown[]>({ type: 'array' }),
});

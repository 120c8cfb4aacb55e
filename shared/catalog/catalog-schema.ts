import { Type, type Static } from 'typebox';
import { Nullable, StringEnum } from '../contract/fields.ts';
import { ModelType, modelTypes, Pricing, type Model } from '../contract/models.ts';
import { encodingNames, type EncodingName } from './count-tokens.ts';
import { openAiProfiles, type OpenAiProfile } from './openai-profile.ts';

/** Defaults and limits of a dialect. To add a dialect, add an entry here. */
export interface UpstreamKindRules {
  /** `required`, `none` if nothing is called over the network, or the vendor's default address. */
  readonly baseUrl: 'required' | 'none' | { readonly default: string };
  /** Model types that the dialect supports. */
  readonly serves: readonly ModelType[];
  /** Limits of one embedding call, unless the upstream sets its own. */
  readonly maxBatchInputs: number;
  readonly maxBatchTokens: number;
  /** Concurrent calls, unless the upstream sets its own limit. */
  readonly maxConcurrency: number;
  /** How long a stream is read for its usage after its caller has left (ms), unless the upstream sets its own time. */
  readonly disconnectGraceMs: number;
  /**
   * Whether image URLs are passed to the vendor, or the gateway fetches the images and sends their bytes. An upstream
   * can override this.
   */
  readonly imageUrls: 'pass' | 'fetch';
}

const openAiBatch = { maxBatchInputs: 2048, maxBatchTokens: 300_000 };
/** Vendors bill what they generate until they notice that nobody reads it, and tell it late. */
const vendorDefaults = { maxConcurrency: 64, disconnectGraceMs: 2_000 };

export const upstreamKinds = {
  openai: {
    baseUrl: 'required',
    serves: modelTypes,
    ...openAiBatch,
    ...vendorDefaults,
    imageUrls: 'pass',
  },
  anthropic: {
    baseUrl: { default: 'https://api.anthropic.com' },
    serves: ['chat', 'vision'],
    ...openAiBatch,
    ...vendorDefaults,
    imageUrls: 'pass',
  },
  gemini: {
    baseUrl: { default: 'https://generativelanguage.googleapis.com' },
    serves: modelTypes,
    maxBatchInputs: 100,
    maxBatchTokens: 300_000,
    ...vendorDefaults,
    imageUrls: 'fetch',
  },
  // There is no vendor whose limits apply. This is only a safety bound.
  builtin: {
    baseUrl: 'none',
    serves: modelTypes,
    ...openAiBatch,
    maxConcurrency: 16_384,
    disconnectGraceMs: 0,
    imageUrls: 'pass',
  },
} as const satisfies Record<string, UpstreamKindRules>;

export type UpstreamKind = keyof typeof upstreamKinds;

/** An upstream that can be called: it has every key it needs. */
export interface CatalogUpstream {
  readonly name: string;
  readonly kind: UpstreamKind;
  /** Without a trailing slash. Empty for `builtin`. */
  readonly baseUrl: string;
  /** Of the server, if the catalog says so. Only for `openai`. */
  readonly profile: OpenAiProfile | null;
  /** Sent with each call. */
  readonly headers: Readonly<Record<string, string>>;
  /** Empty if the server needs none. */
  readonly apiKeys: readonly string[];
  /** Concurrent calls, across all workers. */
  readonly maxConcurrency: number;
  /** Concurrent calls per key. Null means no limit per key. */
  readonly maxConcurrencyPerKey: number | null;
  /** Timeout of the whole call. */
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly firstByteTimeoutMs: number;
  readonly streamFirstByteTimeoutMs: number;
  readonly betweenChunksTimeoutMs: number;
  readonly drops: readonly string[];
  readonly maxBatchInputs: number;
  readonly maxBatchTokens: number;
  /** Whether the vendor receives image URLs or the images' bytes. */
  readonly imageUrls: 'pass' | 'fetch';
  /** How long a stream is still read for its usage after the caller disconnects. Zero ends it immediately. */
  readonly disconnectGraceMs: number;
  /** Whether the vendor gets the `traceparent` of the span of each call. */
  readonly sendsTraceparent: boolean;
}

/**
 * What happens to a stream when its caller disconnects. (Non-streamed responses are always read to the end.) `cancel`
 * ends it once its usage is known, or after `disconnectGraceMs`. `drain` reads it to the end, for vendors that bill
 * the whole response anyway.
 */
export type OnDisconnect = 'cancel' | 'drain';

/** What a token limit covers at a vendor: everything that is generated, or the answer without its reasoning. */
export type MaxTokensScope = 'all' | 'answer';

export interface CatalogRoute {
  /** Unique in the catalog, and stable as long as the route has the same target. */
  readonly id: string;
  readonly upstream: CatalogUpstream;
  /** The model's name at the upstream. */
  readonly model: string;
  readonly weight: number;
  /** Concurrent calls, across all workers. Null means no limit per route. */
  readonly maxConcurrency: number | null;
  /** How reasoning is requested from the vendor's model. Null means it is derived from the model's name. */
  readonly thinking: 'budget' | 'effort' | null;
  /** Which servers it is like, of those with OpenAI's API. Only used for `openai`. */
  readonly profile: OpenAiProfile;
  /** Request fields to omit: those that its profile leaves out, and those of the route and its upstream. */
  readonly drops: ReadonlySet<string>;
  /** Request fields of its server that are not part of the specification. */
  readonly accepts: readonly string[];
  readonly onDisconnect: OnDisconnect;
  readonly maxTokens: MaxTokensScope;
  /** What the vendor charges the operator. Null if the catalog does not say. */
  readonly cost: Pricing | null;
}

export interface CatalogDimensions {
  readonly default: number;
  readonly adjustable: boolean;
  /** The only allowed lengths. If absent, every length from 1 to the maximum is allowed. */
  readonly choices?: readonly number[];
  /** The largest length, if it is not `default`: the limit from the file, or the largest of the choices. */
  readonly max?: number;
}

/** How long vectors are cached, and how much of Redis they may use. */
export interface CatalogEmbeddingCache {
  readonly ttlSeconds: number;
  /** Across all accounts. */
  readonly maxBytes: number;
}

export interface CatalogModel {
  readonly id: string;
  readonly aliases: readonly string[];
  readonly type: ModelType;
  readonly context: number;
  /** Zero for embedding models. */
  readonly maxOutputTokens: number;
  /** Tokens reserved per image in a message. */
  readonly tokensPerImage: number;
  /** Tokens reserved per PDF page, in addition to its text: vendors process it as an image. */
  readonly tokensPerPage: number;
  /** The encoding used to count tokens here. */
  readonly tokenizer: EncodingName;
  /** Whether that is also the vendor's encoding, according to the catalog. */
  readonly hasTokenizer: boolean;
  /** Tokens the vendor adds to each embedding input. Null if the catalog does not specify it. */
  readonly specialTokens: number | null;
  /** Tokens reserved for the results of a web search. */
  readonly tokensPerSearch: number;
  /** Whether the model searches, or runs tools at its vendor, even if the request does not ask for it. */
  readonly alwaysMaySearch: boolean;
  /** Set only for embedding models. */
  readonly dimensions: CatalogDimensions | null;
  /** Null if nothing is cached. */
  readonly embeddingCache: CatalogEmbeddingCache | null;
  readonly sizes: readonly string[] | null;
  readonly rpmCoefficient: number;
  readonly pricing: Pricing;
  /** Changes if and only if the cost of a request may change. */
  readonly priceVersion: string;
  /** Only usable routes. If there are none, the model is inactive. */
  readonly routes: readonly CatalogRoute[];
  readonly published: Omit<Model, 'active'>;
}

export interface UnusableRoute {
  /** Its upstream has no keys. */
  readonly route: CatalogRoute;
  /** Why its upstream cannot be used: `OPENAI_API_KEY is not set`. */
  readonly problems: readonly string[];
}

export interface Catalog {
  readonly models: readonly CatalogModel[];
  /** Only usable upstreams. */
  readonly upstreams: readonly CatalogUpstream[];
  readonly warnings: readonly string[];
  /** The routes of a model whose upstreams cannot be used, by model id. */
  readonly unusableRoutes: ReadonlyMap<string, readonly UnusableRoute[]>;
  find(idOrAlias: string): CatalogModel | undefined;
}

const positiveInteger = (options: object = {}) => Type.Integer({ minimum: 1, ...options });
const text = () => Type.Optional(Nullable(Type.String({ minLength: 1 })));
const texts = () => Type.Optional(Nullable(Type.Array(Type.String({ minLength: 1 }), { uniqueItems: true })));
const flag = () => Type.Optional(Nullable(Type.Boolean()));
const drops = () => Type.Array(Type.String({ minLength: 1 }), { default: [] });

/** check-catalog checks what a schema cannot express, and also the format of ids, keys and addresses. */
export const UpstreamEntry = Type.Object({
  kind: StringEnum(Object.keys(upstreamKinds) as UpstreamKind[]),
  baseUrl: Type.Optional(Type.String()),
  dialect: Type.Optional(StringEnum([...openAiProfiles])),
  headers: Type.Optional(Type.Record(Type.String(), Type.String({ minLength: 1 }))),
  apiKeys: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
  maxConcurrency: Type.Optional(positiveInteger()),
  maxConcurrencyPerKey: Type.Optional(positiveInteger()),
  timeoutMs: positiveInteger({ default: 120_000 }),
  connectTimeoutMs: positiveInteger({ default: 10_000 }),
  // A response that is not streamed sends its first byte only when it is complete, so the timeout of the whole call
  // applies.
  firstByteTimeoutMs: Type.Optional(positiveInteger()),
  streamFirstByteTimeoutMs: Type.Optional(positiveInteger()),
  betweenChunksTimeoutMs: positiveInteger({ default: 60_000 }),
  drops: drops(),
  maxBatchInputs: Type.Optional(positiveInteger()),
  maxBatchTokens: Type.Optional(positiveInteger()),
  imageUrls: Type.Optional(StringEnum(['pass', 'fetch'])),
  // A stopping worker has 28 s for everything it runs.
  disconnectGraceMs: Type.Optional(Type.Integer({ minimum: 0, maximum: 20_000 })),
  traces: StringEnum(['on', 'off'], { default: 'off' }),
});
export type UpstreamEntry = Static<typeof UpstreamEntry>;

/** What a vendor charges, in the form of a model's prices. */
const CostEntry = Type.Omit(Pricing, ['date_of_use', 'free_requests']);
export type CostEntry = Static<typeof CostEntry>;

export const RouteEntry = Type.Object({
  upstream: Type.String({ minLength: 1 }),
  model: Type.Optional(Type.String({ minLength: 1 })),
  weight: Type.Number({ exclusiveMinimum: 0, default: 1 }),
  maxConcurrency: Type.Optional(positiveInteger()),
  thinking: Type.Optional(StringEnum(['budget', 'effort'])),
  drops: drops(),
  accepts: Type.Array(Type.String({ pattern: '^[a-zA-Z_][a-zA-Z0-9_]{0,63}$' }), { default: [] }),
  onDisconnect: StringEnum(['cancel', 'drain'], { default: 'cancel' }),
  maxTokens: StringEnum(['all', 'answer'], { default: 'all' }),
  cost: Type.Optional(CostEntry),
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
  // A smaller cache could not hold the vectors of one request.
  maxBytes: Type.Integer({ minimum: 1_000_000, default: 100_000_000 }),
});

/** A model under the specification's names, plus the gateway's own settings. */
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

/** The file's top level. Entries are checked one by one, so that errors in one do not hide errors in another. */
export const CatalogOutline = Type.Object({
  upstreams: Type.Unsafe<Record<string, unknown>>({ type: 'object' }),
  models: Type.Unsafe<unknown[]>({ type: 'array' }),
});

import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from './fields.ts';
import { defineOperation } from './operation.ts';

export const modelTypes = ['chat', 'vision', 'image', 'embedding'] as const;
export const ModelType = StringEnum(modelTypes);
export type ModelType = Static<typeof ModelType>;

export const pricingTypes = ['tokens', 'image', 'time', 'characters', 'request'] as const;
export const PricingType = StringEnum(pricingTypes);
export type PricingType = Static<typeof PricingType>;

/** Roubles; at most nine decimals, which the catalog checks. */
const Price = Type.Number({ minimum: 0 });
const price = () => Type.Optional(Nullable(Price));

export const PriceOverride = Type.Object({
  min_prompt_tokens: Type.Integer({ exclusiveMinimum: 0 }),
  prompt: price(),
  completion: price(),
  input_cache_read: price(),
  input_cache_write: price(),
});
export type PriceOverride = Static<typeof PriceOverride>;

/** By quality, or by quality and then size: `{hd: 8}` or `{hd: {"1024x1024": 8}}`. */
export const CostPerImageQuality = Type.Unsafe<Record<string, number | Record<string, number>>>({
  type: 'object',
  additionalProperties: {
    anyOf: [
      { type: 'number', minimum: 0 },
      { type: 'object', additionalProperties: { type: 'number', minimum: 0 } },
    ],
  },
});

export const Pricing = Type.Object({
  date_of_use: Type.String({ description: 'The day this price took effect, YYYY-MM-DD.' }),
  type: Type.Unsafe<PricingType>({ ...PricingType, default: 'tokens' }),
  in_cost_per_million: price(),
  out_cost_per_million: price(),
  cost_per_million: price(),
  cost_per_image: price(),
  cost_per_image_quality: Type.Optional(Nullable(CostPerImageQuality)),
  cost_per_second: price(),
  cost_per_request: price(),
  prompt: price(),
  completion: price(),
  input_cache_read: price(),
  input_cache_write: price(),
  overrides: Type.Optional(Nullable(Type.Array(PriceOverride))),
  free_requests: Type.Boolean({ default: false }),
});
export type Pricing = Static<typeof Pricing>;

export const OptionSpec = Type.Object({
  default: Nullable(Type.String()),
  choices: Nullable(Type.Array(Type.String())),
});
export type OptionSpec = Static<typeof OptionSpec>;

const strings = () => Nullable(Type.Array(Type.String()));

export const Model = Type.Object({
  id: Type.String(),
  object: StringEnum(['model', 'proxy']),
  created: Type.Integer(),
  context: Type.Integer(),
  size: strings(),
  type: ModelType,
  active: Type.Boolean(),
  name: Nullable(Type.String()),
  description: Nullable(Type.String()),
  img: Nullable(Type.String()),
  reasoning: Nullable(Type.Boolean()),
  reasoning_effort: Nullable(OptionSpec),
  image_quality: Nullable(OptionSpec),
  web_search: Nullable(Type.Boolean()),
  input_modalities: strings(),
  output_modalities: strings(),
  supported_file_types: strings(),
  max_image_count: Nullable(Type.Integer()),
  max_file_count: Nullable(Type.Integer()),
  architecture: Nullable(Type.String()),
  quantization: Nullable(Type.String()),
  pricing: Pricing,
  owned_by: Type.String(),
  rpm_coefficient: Type.Integer({ default: 1 }),
});
export type Model = Static<typeof Model>;

export const ModelList = Type.Object({
  object: Nullable(Type.String({ default: 'list' })),
  data: Nullable(Type.Array(Model)),
});

export const listModels = defineOperation({
  operationId: 'listModels',
  tag: 'Models',
  summary: 'List the models and their prices',
  method: 'get',
  path: '/models',
  auth: 'none',
  query: Type.Object({ type: Type.Optional(ModelType) }),
  response: ModelList,
  errors: [],
});

export const getModel = defineOperation({
  operationId: 'getModel',
  tag: 'Models',
  summary: 'Show one model, by its id or its alternative id',
  method: 'get',
  path: '/models/{model_id}',
  auth: 'none',
  response: Model,
  errors: ['model_not_found'],
});

export const StatusMessage = StringEnum(
  ['Good', 'Normal', 'Acceptable', 'Bad', 'Dead', 'Disabled', 'Not enough data'],
  {
    description:
      'By the success rate: `Good` above 90, `Normal` above 80, `Acceptable` above 70, `Bad` above 60, else `Dead`. ' +
      '`Not enough data` below five judged requests; `Disabled` where the model cannot be used now.',
  },
);
export type StatusMessage = Static<typeof StatusMessage>;

export const ModelStatus = Type.Object({
  message: StatusMessage,
  success_rate: Type.Number({
    minimum: 0,
    maximum: 100,
    description:
      'Percent of the judged requests that succeeded, with two decimals; 0 where none was judged. A request counts ' +
      'against the model where it failed with a status of 500 or more; one that the model refused, or whose caller ' +
      'left, is not judged.',
  }),
  tps: Type.Optional(
    Nullable(
      Type.Number({
        description:
          'Tokens a second of the successes: completion tokens of chat and vision models, prompt tokens of embedding ' +
          'models, over the time that the vendor took. Null where unknown; image models have none.',
      }),
    ),
  ),
  art: Nullable(
    Type.Number({
      description:
        'Average time of the successes, from admission to settlement, in seconds. Null where unknown.',
    }),
  ),
});
export type ModelStatus = Static<typeof ModelStatus>;

export const ModelStatuses = Type.Unsafe<Record<string, ModelStatus>>({
  type: 'object',
  description: 'Every model of the list, by its id.',
  additionalProperties: ModelStatus,
});
export type ModelStatuses = Static<typeof ModelStatuses>;

export const getModelsStatus = defineOperation({
  operationId: 'getModelsStatus',
  tag: 'Models',
  summary: 'Show how well each model works',
  description:
    'Over the last 30 minutes, refreshed every 30 seconds and the same on every server. A model that is turned off is ' +
    '`Disabled` at once.',
  method: 'get',
  path: '/models/status',
  auth: 'none',
  response: ModelStatuses,
  errors: ['service_unavailable'],
});

import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from './fields.ts';
import { defineOperation } from './operation.ts';

/** What models are for, in the order in which they are listed. */
export const modelTypes = ['chat', 'vision', 'image', 'embedding'] as const;
export const ModelType = StringEnum(modelTypes);
export type ModelType = Static<typeof ModelType>;

const pricingTypes = ['tokens', 'image', 'time', 'characters', 'request'] as const;
export const PricingType = StringEnum(pricingTypes);
export type PricingType = Static<typeof PricingType>;

/** In roubles, with at most nine decimals. The catalog checks that. */
const price = (description: string) =>
  Type.Optional(Nullable(Type.Number({ minimum: 0, description: `${description}, in roubles.` })));
const tokenPrices = {
  prompt: price('Price per million prompt tokens'),
  completion: price('Price per million completion tokens'),
  input_cache_read: price('Price per million tokens that the vendor read from its cache'),
  input_cache_write: price('Price per million tokens that the vendor wrote to its cache'),
};

export const PriceOverride = Type.Object(
  {
    min_prompt_tokens: Type.Integer({
      exclusiveMinimum: 0,
      description: 'The override applies to requests whose prompt has at least this many tokens.',
    }),
    ...tokenPrices,
  },
  { title: 'PriceOverride' },
);
export type PriceOverride = Static<typeof PriceOverride>;

/** Has a name and `allOf`, because openapi-generator for Java cannot write a union with a plain map. */
const PricesBySize = {
  title: 'PricesBySize',
  type: 'object',
  additionalProperties: true,
  allOf: [{ type: 'object', additionalProperties: { type: 'number', minimum: 0 } }],
};

/** By quality, or by quality and size: `{hd: 8}` or `{hd: {"1024x1024": 8}}`. */
export const CostPerImageQuality = Type.Unsafe<Record<string, number | Record<string, number>>>({
  type: 'object',
  description:
    'Price per image, in roubles, by quality, or by quality and size: `{"hd": 8}` or `{"hd": {"1024x1024": 8}}`.',
  additionalProperties: {
    anyOf: [{ type: 'number', minimum: 0 }, PricesBySize],
  },
});

export const Pricing = Type.Object(
  {
    date_of_use: Type.String({ description: 'The day this price took effect, YYYY-MM-DD.' }),
    type: Type.Unsafe<PricingType>({
      ...PricingType,
      default: 'tokens',
      description: 'What is billed. The price fields of the other types are null.',
    }),
    in_cost_per_million: price('Price per million prompt tokens if `prompt` is null'),
    out_cost_per_million: price('Price per million completion tokens if `completion` is null'),
    cost_per_million: price(
      'Price per million characters if `type` is `characters`, otherwise per million tokens of any kind',
    ),
    cost_per_image: price('Price per image, unless `cost_per_image_quality` sets another one'),
    cost_per_image_quality: Type.Optional(Nullable(CostPerImageQuality)),
    cost_per_second: price('Price per second of the vendor’s processing time if `type` is `time`'),
    cost_per_request: price('Price per request if `type` is `request`'),
    ...tokenPrices,
    overrides: Type.Optional(
      Nullable(
        Type.Array(PriceOverride, {
          description:
            'Prices for long prompts. If several apply, the one with the largest `min_prompt_tokens` is used.',
        }),
      ),
    ),
    free_requests: Type.Boolean({
      default: false,
      description: 'Whether free requests can be used for this model.',
    }),
  },
  { title: 'Pricing' },
);
export type Pricing = Static<typeof Pricing>;

export const OptionSpec = Type.Object(
  {
    default: Nullable(Type.String({ description: 'The value used if the field is omitted.' })),
    choices: Nullable(Type.Array(Type.String(), { description: 'The allowed values; others are rejected.' })),
  },
  { title: 'OptionSpec' },
);
export type OptionSpec = Static<typeof OptionSpec>;

const strings = (description: string) => Nullable(Type.Array(Type.String(), { description }));
const text = (description: string) => Nullable(Type.String({ description }));
const count = (description: string) => Nullable(Type.Integer({ description }));
const flag = (description: string) => Nullable(Type.Boolean({ description }));

export const Model = Type.Object(
  {
    id: Type.String({ description: 'The model’s id, to send as `model` in requests.' }),
    object: StringEnum(['model', 'proxy']),
    created: Type.Integer({ description: 'Unix seconds.' }),
    context: Type.Integer({
      description:
        'Maximum number of prompt and completion tokens together; for embedding models, of tokens per input.',
    }),
    size: strings(
      'Sizes of the images that the model generates; null if it accepts any size or generates no images.',
    ),
    type: ModelType,
    active: Type.Boolean({
      description: 'Whether the model can be used now. Requests to an inactive model are rejected.',
    }),
    name: text('Display name.'),
    description: text('Display description.'),
    img: text('URL of an image that represents the model.'),
    reasoning: flag('Whether the model reasons before it responds.'),
    reasoning_effort: Nullable(OptionSpec),
    image_quality: Nullable(OptionSpec),
    web_search: flag('Whether the model can search the web; null if not applicable.'),
    input_modalities: strings('Input types: `text`, `image`, `audio`, `file`.'),
    output_modalities: strings('Output types: `text`, `image`, `embedding`.'),
    supported_file_types: strings(
      'Extensions of the files that the model accepts, such as `pdf`; null if it accepts none.',
    ),
    max_image_count: count('Maximum number of images per request.'),
    max_file_count: count('Maximum number of files per request.'),
    architecture: text('The architecture, as stated by the model’s developer.'),
    quantization: text('The quantization that the host uses, such as `fp8`.'),
    pricing: Pricing,
    owned_by: Type.String({ description: 'The developer or provider of the model.' }),
    rpm_coefficient: Type.Integer({
      default: 1,
      description:
        'How many requests one request to this model counts as towards the account’s requests per minute.',
    }),
  },
  { title: 'Model' },
);
export type Model = Static<typeof Model>;

export const ModelList = Type.Object(
  {
    object: Nullable(Type.String({ default: 'list' })),
    data: Nullable(Type.Array(Model, { description: 'The models, in the order set by the operator.' })),
  },
  { title: 'ModelList' },
);

const modelExample = {
  id: 'demo-echo',
  object: 'model',
  created: 0,
  context: 8192,
  size: null,
  type: 'chat',
  active: true,
  name: 'Demo echo',
  description: 'No AI. It repeats what it was told, so that a client can be tried without a vendor.',
  img: null,
  reasoning: null,
  reasoning_effort: null,
  image_quality: null,
  web_search: null,
  input_modalities: ['text'],
  output_modalities: ['text'],
  supported_file_types: null,
  max_image_count: null,
  max_file_count: null,
  architecture: null,
  quantization: null,
  pricing: {
    date_of_use: '2025-11-21',
    type: 'tokens',
    in_cost_per_million: null,
    out_cost_per_million: null,
    cost_per_million: null,
    cost_per_image: null,
    cost_per_image_quality: null,
    cost_per_second: null,
    cost_per_request: null,
    prompt: 50,
    completion: 150,
    input_cache_read: null,
    input_cache_write: null,
    overrides: null,
    free_requests: true,
  },
  owned_by: 'builtin',
  rpm_coefficient: 1,
};

export const listModels = defineOperation({
  operationId: 'listModels',
  tag: 'Models',
  summary: 'List the models and their prices',
  description:
    'Lists the models of this service. A model that the operator has disabled is listed with `"active": false`. Models ' +
    'for which the service has no vendor key or URL are omitted, unless you send `active=all`; ' +
    '`GET /v1/models/{model_id}` returns them too.',
  method: 'get',
  path: '/models',
  auth: 'none',
  hasETag: true,
  query: Type.Object({
    type: Type.Optional(
      Type.Unsafe<ModelType>({
        ...ModelType,
        description: 'Return only models of this type. Defaults to all types.',
      }),
    ),
    active: Type.Optional(
      StringEnum(['all'], {
        description: '`all`: also return models for which this service has no vendor key or URL.',
      }),
    ),
  }),
  response: ModelList,
  errors: [],
  example: { query: { type: 'chat' }, response: { object: 'list', data: [modelExample] } },
});

export const getModel = defineOperation({
  operationId: 'getModel',
  tag: 'Models',
  summary: 'Get a model by its id or alternative id',
  method: 'get',
  path: '/models/{model_id}',
  auth: 'none',
  hasETag: true,
  pathParameters: Type.Object({
    model_id: Type.String({
      description: 'The id of the model. Slashes can be sent as they are or as `%2F`.',
    }),
  }),
  response: Model,
  errors: ['model_not_found'],
  example: { path: { model_id: 'demo-echo' }, response: modelExample },
});

export const StatusMessage = StringEnum(
  ['Good', 'Normal', 'Acceptable', 'Bad', 'Dead', 'Disabled', 'Not enough data'],
  {
    description:
      'Based on the success rate: `Good` above 90, `Normal` above 80, `Acceptable` above 70, `Bad` above 60, otherwise ' +
      '`Dead`. `Not enough data` if fewer than five requests were counted, `Disabled` if the model cannot be used now.',
  },
);
export type StatusMessage = Static<typeof StatusMessage>;

export const ModelStatus = Type.Object(
  {
    message: StatusMessage,
    success_rate: Type.Number({
      minimum: 0,
      maximum: 100,
      description:
        'Percentage of the counted requests that succeeded, with two decimal places; 0 if none were counted. Requests ' +
        'that failed with a status of 500 or higher count as failures. Requests that the model rejected, or whose ' +
        'caller disconnected, are not counted.',
    }),
    tps: Type.Optional(
      Nullable(
        Type.Number({
          description:
            'Tokens per second of the vendor’s processing time in successful requests: completion tokens for chat and ' +
            'vision models, prompt tokens for embedding models. Null if unknown; absent for image models.',
        }),
      ),
    ),
    art: Nullable(
      Type.Number({
        description:
          'Average time of successful requests, from acceptance to final charge, in seconds. Null if unknown.',
      }),
    ),
  },
  { title: 'ModelStatus' },
);
export type ModelStatus = Static<typeof ModelStatus>;

export const ModelStatuses = Type.Unsafe<Record<string, ModelStatus>>({
  type: 'object',
  description: 'The status of every listed model, by model id.',
  additionalProperties: ModelStatus,
});
export type ModelStatuses = Static<typeof ModelStatuses>;

export const ModelHour = Type.Object(
  {
    hour: Type.String({ format: 'date-time', description: 'The beginning of the hour, in UTC.' }),
    requests: Type.Integer({
      description: 'Requests that count, as in `/models/status`; 0 if there were none.',
    }),
    success_rate: Nullable(
      Type.Number({
        minimum: 0,
        maximum: 100,
        description: 'Percentage of them that succeeded, with two decimal places. Null without requests.',
      }),
    ),
    tps: Nullable(
      Type.Number({
        description: 'Tokens per second, as in `/models/status`. Null if unknown, and for image models.',
      }),
    ),
    art: Nullable(
      Type.Number({
        description: 'Average time of successful requests, as in `/models/status`. Null if there were none.',
      }),
    ),
  },
  { title: 'ModelHour' },
);
export type ModelHour = Static<typeof ModelHour>;

export const ModelHistories = Type.Unsafe<Record<string, ModelHour[]>>({
  type: 'object',
  description: 'The hours of every model that `GET /models` lists, by model id: 24 each, oldest first.',
  additionalProperties: { type: 'array', items: ModelHour, minItems: 24, maxItems: 24 },
});
export type ModelHistories = Static<typeof ModelHistories>;

const quietHours = Array.from({ length: 23 }, (_, i): ModelHour => ({
  hour: new Date(Date.UTC(2025, 10, 20, 13 + i)).toISOString(),
  requests: 0,
  success_rate: null,
  tps: null,
  art: null,
}));
const currentHour = '2025-11-21T12:00:00.000Z';

export const getModelsHistory = defineOperation({
  operationId: 'getModelsHistory',
  tag: 'Models',
  summary: 'Get the last 24 hours of each model',
  description:
    'Covers the current hour and the 23 hours before it. Refreshed every 30 seconds. In an hour without requests, ' +
    '`requests` is 0 and the rest is null.',
  method: 'get',
  path: '/models/history',
  auth: 'none',
  hasETag: true,
  response: ModelHistories,
  errors: ['service_unavailable'],
  example: {
    response: {
      'demo-echo': [
        ...quietHours,
        { hour: currentHour, requests: 1_204, success_rate: 99.42, tps: 61.3, art: 0.412 },
      ],
    },
  },
});

export const getModelsStatus = defineOperation({
  operationId: 'getModelsStatus',
  tag: 'Models',
  summary: 'Get the status of each model',
  description:
    'Covers the last 30 minutes. Refreshed every 30 seconds and the same on every server. A model that is disabled is ' +
    'shown as `Disabled` immediately.',
  method: 'get',
  path: '/models/status',
  auth: 'none',
  hasETag: true,
  response: ModelStatuses,
  errors: ['service_unavailable'],
  example: {
    response: {
      'demo-echo': { message: 'Good', success_rate: 99.42, tps: 61.3, art: 0.412 },
      'demo-svg-image': { message: 'Not enough data', success_rate: 0, art: null },
    },
  },
});

import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from './fields.ts';
import { defineOperation } from './operation.ts';

export const modelTypes = ['chat', 'vision', 'image', 'embedding'] as const;
export const ModelType = StringEnum(modelTypes);
export type ModelType = Static<typeof ModelType>;

export const pricingTypes = ['tokens', 'image', 'time', 'characters', 'request'] as const;
export const PricingType = StringEnum(pricingTypes);
export type PricingType = Static<typeof PricingType>;

/** In roubles, with at most nine decimals. The catalog checks that. */
const price = (description: string) =>
  Type.Optional(Nullable(Type.Number({ minimum: 0, description: `${description}, in roubles.` })));
const tokenPrices = {
  prompt: price('A million tokens of prompt'),
  completion: price('A million tokens of answer'),
  input_cache_read: price('A million tokens that the vendor read from its cache'),
  input_cache_write: price('A million tokens that the vendor wrote to its cache'),
};

export const PriceOverride = Type.Object(
  {
    min_prompt_tokens: Type.Integer({
      exclusiveMinimum: 0,
      description: 'The override applies to requests whose prompt has at least so many tokens.',
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
    'A picture, in roubles, by quality, or by quality and then size: `{"hd": 8}` or `{"hd": {"1024x1024": 8}}`.',
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
      description: 'What is paid for; the fields of the other types are null.',
    }),
    in_cost_per_million: price('A million tokens of prompt, where `prompt` is null'),
    out_cost_per_million: price('A million tokens of answer, where `completion` is null'),
    cost_per_million: price(
      'A million characters where `type` is `characters`, else a million tokens of any kind',
    ),
    cost_per_image: price('A picture, where `cost_per_image_quality` does not say otherwise'),
    cost_per_image_quality: Type.Optional(Nullable(CostPerImageQuality)),
    cost_per_second: price('A second of the vendor’s work, where `type` is `time`'),
    cost_per_request: price('A request, where `type` is `request`'),
    ...tokenPrices,
    overrides: Type.Optional(
      Nullable(
        Type.Array(PriceOverride, {
          description:
            'Prices of long prompts: of those that apply, the one with the most `min_prompt_tokens`.',
        }),
      ),
    ),
    free_requests: Type.Boolean({ default: false, description: 'Whether free requests pay for it.' }),
  },
  { title: 'Pricing' },
);
export type Pricing = Static<typeof Pricing>;

export const OptionSpec = Type.Object(
  {
    default: Nullable(Type.String({ description: 'What holds where the field is left out.' })),
    choices: Nullable(Type.Array(Type.String(), { description: 'Other values are refused.' })),
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
    id: Type.String({ description: 'What requests name it by.' }),
    object: StringEnum(['model', 'proxy']),
    created: Type.Integer({ description: 'Unix seconds.' }),
    context: Type.Integer({
      description: 'The most tokens of prompt and answer together; of one input, for embeddings.',
    }),
    size: strings('Sizes of the pictures it makes; null where any is taken or it makes none.'),
    type: ModelType,
    active: Type.Boolean({ description: 'Whether it can be used now; requests for others are refused.' }),
    name: text('For people to read.'),
    description: text('For people to read.'),
    img: text('URL of a picture of it.'),
    reasoning: flag('Whether it thinks before it answers.'),
    reasoning_effort: Nullable(OptionSpec),
    image_quality: Nullable(OptionSpec),
    web_search: flag('Whether it can search the web; null where that makes no sense.'),
    input_modalities: strings('What it reads: `text`, `image`, `audio`, `file`.'),
    output_modalities: strings('What it makes: `text`, `image`, `embedding`.'),
    supported_file_types: strings(
      'Extensions of the files it reads, such as `pdf`; null where it reads none.',
    ),
    max_image_count: count('The most pictures of one request.'),
    max_file_count: count('The most files of one request.'),
    architecture: text('As its maker describes it.'),
    quantization: text('As its host runs it, such as `fp8`.'),
    pricing: Pricing,
    owned_by: Type.String({ description: 'Who made it or offers it.' }),
    rpm_coefficient: Type.Integer({
      default: 1,
      description: 'How many of the account’s requests per minute one request to it takes up.',
    }),
  },
  { title: 'Model' },
);
export type Model = Static<typeof Model>;

export const ModelList = Type.Object(
  {
    object: Nullable(Type.String({ default: 'list' })),
    data: Nullable(Type.Array(Model, { description: 'In the operator’s order.' })),
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
    'The models of this service. One that its operator disabled is listed with `"active": false`. Models for which the ' +
    'service has no key or address are left out, unless `active=all` is sent; `GET /v1/models/{model_id}` shows them too.',
  method: 'get',
  path: '/models',
  auth: 'none',
  hasETag: true,
  query: Type.Object({
    type: Type.Optional(
      Type.Unsafe<ModelType>({ ...ModelType, description: 'Only models of this type; all, where left out.' }),
    ),
    active: Type.Optional(
      StringEnum(['all'], {
        description: '`all`: also models for which this service has no key or address.',
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
  summary: 'Show one model, by its id or its alternative id',
  method: 'get',
  path: '/models/{model_id}',
  auth: 'none',
  hasETag: true,
  pathParameters: Type.Object({
    model_id: Type.String({ description: 'Slashes in it may be written as they are or as `%2F`.' }),
  }),
  response: Model,
  errors: ['model_not_found'],
  example: { path: { model_id: 'demo-echo' }, response: modelExample },
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

export const ModelStatus = Type.Object(
  {
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
  },
  { title: 'ModelStatus' },
);
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

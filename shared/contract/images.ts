import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from './fields.ts';
import { creationErrors, defineOperation } from './operation.ts';

export const defaultImageSize = '1024x1024';

export const ImageRequest = Type.Object({
  model: Type.String({ minLength: 1 }),
  prompt: Type.String({ minLength: 3 }),
  negative_prompt: Type.Optional(Nullable(Type.String())),
  n: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 4, default: 1 }))),
  response_format: Type.Optional(Nullable(StringEnum(['url', 'b64_json'], { default: 'b64_json' }))),
  size: Type.Optional(
    Nullable(
      Type.String({
        // No `default` keyword: a model that lacks this size takes its own first one when none was asked for.
        description: `${defaultImageSize} where the model has it, else the model's first size.`,
      }),
    ),
  ),
  quality: Type.Optional(Nullable(Type.String())),
  style: Type.Optional(Nullable(Type.String())),
  image_url: Type.Optional(
    Type.Unsafe<string | string[] | null>({
      anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }, { type: 'null' }],
    }),
  ),
  user: Type.Optional(Nullable(Type.String({ maxLength: 512 }))),
});
export type ImageRequest = Static<typeof ImageRequest>;

export const ImageUsage = Type.Object({
  total_time: Type.Number({ description: 'Seconds.' }),
  cost_request: Type.Number({ description: 'Roubles.' }),
  free_request: Nullable(Type.Boolean()),
});

export const ImageResponse = Type.Object({
  id: Type.String(),
  created: Type.Integer(),
  data: Type.Array(
    Type.Object({
      revised_prompt: Nullable(Type.String()),
      b64_json: Nullable(Type.String()),
      url: Nullable(Type.String()),
    }),
  ),
  usage: ImageUsage,
});

export const createImage = defineOperation({
  operationId: 'createImage',
  tag: 'Images',
  summary: 'Generate images from a prompt',
  method: 'post',
  path: '/images/generations',
  auth: 'key',
  bodyLimitBytes: 32_000_000,
  body: ImageRequest,
  response: ImageResponse,
  errors: creationErrors,
});

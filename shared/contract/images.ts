import Type, { type Static } from 'typebox';
import {
  CostRequest,
  CreatedSeconds,
  EndUser,
  FreeRequest,
  Nullable,
  RequestId,
  StringEnum,
  TotalTime,
} from './fields.ts';
import { creationErrors, defineOperation } from './operation.ts';

export const defaultImageSize = '1024x1024';
/** Far beyond any name of a size or quality. */
const maxOptionLength = 100;

export const ImageRequest = Type.Object(
  {
    model: Type.String({ minLength: 1, description: 'The id of an `image` model.' }),
    prompt: Type.String({ minLength: 3, description: 'What the picture shows.' }),
    negative_prompt: Type.Optional(
      Nullable(
        Type.String({
          description:
            'What it must not show; counts as part of the prompt. For models without such a field it is worked into the ' +
            'prompt.',
        }),
      ),
    ),
    n: Type.Optional(
      Nullable(
        Type.Integer({
          minimum: 1,
          maximum: 4,
          default: 1,
          description: 'How many pictures; at most the model’s `max_image_count`. Each is paid for.',
        }),
      ),
    ),
    response_format: Type.Optional(
      Nullable(
        StringEnum(['url', 'b64_json'], {
          default: 'b64_json',
          description: '`url` answers with links that work for 24 hours.',
        }),
      ),
    ),
    size: Type.Optional(
      Nullable(
        Type.String({
          maxLength: maxOptionLength,
          // No `default` keyword: a model that lacks this size takes its own first one when none was asked for.
          description:
            `One of the model’s sizes, as \`WIDTHxHEIGHT\`. ${defaultImageSize} unless set; ` +
            'the model’s first size where it lacks that one.',
        }),
      ),
    ),
    quality: Type.Optional(
      Nullable(
        Type.String({
          maxLength: maxOptionLength,
          description: 'One of the model’s `image_quality.choices`; may change the price.',
        }),
      ),
    ),
    style: Type.Optional(
      Nullable(
        Type.String({
          description: 'Depends on the model, such as `vivid` or `natural`; counts as part of the prompt.',
        }),
      ),
    ),
    image_url: Type.Optional(
      Type.Unsafe<string | string[] | null>({
        anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }, { type: 'null' }],
        description:
          'URL or base64 of input pictures, for editing. Refused while no model here edits pictures.',
      }),
    ),
    user: EndUser,
  },
  { title: 'ImageRequest' },
);
export type ImageRequest = Static<typeof ImageRequest>;

export const ImageUsage = Type.Object(
  { total_time: TotalTime, cost_request: CostRequest, free_request: FreeRequest },
  { title: 'ImageUsage' },
);

export const Image = Type.Object(
  {
    revised_prompt: Nullable(
      Type.String({ description: 'The prompt as the vendor changed it; null where it did not say.' }),
    ),
    b64_json: Nullable(
      Type.String({ description: 'The picture in base64; null where a link was asked for.' }),
    ),
    url: Nullable(
      Type.String({ description: 'A link that needs no key and works for 24 hours; null with `b64_json`.' }),
    ),
  },
  { title: 'Image' },
);

export const ImageResponse = Type.Object(
  {
    id: RequestId,
    created: CreatedSeconds,
    data: Type.Array(Image, { description: 'As many as `n`.' }),
    usage: ImageUsage,
  },
  { title: 'ImageResponse' },
);

export const createImage = defineOperation({
  operationId: 'createImage',
  tag: 'Images',
  summary: 'Generate images from a prompt',
  description:
    'Pictures take seconds to minutes: set your client’s timeout accordingly. If you close the connection, work that ' +
    'still waits is dropped and free, unless it has an `Idempotency-Key`; once the model was asked, the pictures are ' +
    'made to the end and charged.',
  method: 'post',
  path: '/images/generations',
  auth: 'key',
  modelTypes: ['image'],
  bodyLimitBytes: 32_000_000,
  body: ImageRequest,
  response: ImageResponse,
  errors: creationErrors,
  example: {
    body: {
      model: 'demo-svg-image',
      prompt: 'a lighthouse at dusk',
      size: '512x512',
      response_format: 'url',
    },
    response: {
      id: '019aa652-f259-7b68-b0d2-3f6c1e5a9d80',
      created: 1_763_727_045,
      data: [
        {
          revised_prompt: null,
          b64_json: null,
          url: 'https://gateway.example/files/019aa652f259-Zq3vR8xLw0mT5yKc2BnD7hJfU1sPgA9eXiO4tVbQ6kE.png',
        },
      ],
      usage: { total_time: 0.731, cost_request: 0.05, free_request: false },
    },
  },
});

import Type, { type Static, type TSchema } from 'typebox';
import { EndUser, lengthHint, Nullable, StringEnum } from './fields.ts';

export const defaultImageSize = '1024x1024';
/** Maximum input images per edit, unless the model's `max_file_count` sets another limit. */
export const defaultMaxInputImages = 16;
/** Far longer than any size or quality name. */
const maxOptionLength = 100;

const option = (description: string) =>
  Type.Optional(Nullable(Type.String({ maxLength: maxOptionLength, description })));

const choice = <const T extends readonly string[]>(values: T, description: string) =>
  Type.Optional(Nullable(StringEnum(values, { description })));

/** Fields of the specification, shared by both operations. */
const commonFields = {
  model: Type.String({ minLength: 1, description: 'The id of an `image` model.' }),
  prompt: Type.String({
    minLength: 3,
    [lengthHint]: 'this limit is set by this service, not by the model',
    description: 'A description of the image to generate, or of the edit to make.',
  }),
  negative_prompt: Type.Optional(
    Nullable(
      Type.String({
        description:
          'What the image must not show. Billed as part of the prompt. For models without such a field, it is added to the ' +
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
        description: 'How many images to generate, at most the model’s `max_image_count`. You pay for each.',
      }),
    ),
  ),
  response_format: Type.Optional(
    Nullable(
      StringEnum(['url', 'b64_json'], {
        default: 'b64_json',
        description: '`url` returns links that work for 24 hours, `b64_json` the images in base64.',
      }),
    ),
  ),
  // No `default` keyword: a model without this size uses its first size if the caller specifies none.
  size: option(
    `One of the model’s sizes, as \`WIDTHxHEIGHT\`. Defaults to ${defaultImageSize}, also for \`auto\`, or to the ` +
      `model’s first size if it does not have that one. A model that lists no sizes supports only ${defaultImageSize}, ` +
      'unless it is priced by tokens or time.',
  ),
  quality: option(
    'One of the model’s `image_quality.choices`. Can affect the price. `auto` and `standard` select the model’s default.',
  ),
  style: Type.Optional(
    Nullable(
      Type.String({
        description:
          'The style, such as `vivid` or `natural`; the values depend on the model. Billed as part of the prompt.',
      }),
    ),
  ),
};

/** Additional fields that OpenAI's clients may send. */
const openAiFields = {
  background: choice(
    ['transparent', 'opaque', 'auto'],
    'The background of the image, for models that support it. `transparent` requires `png` or `webp`.',
  ),
  output_format: choice(
    ['png', 'jpeg', 'webp'],
    'The format of the image. Defaults to the model’s own format.',
  ),
  output_compression: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 0,
        maximum: 100,
        description: 'The quality of `jpeg` and `webp` files: 100 is the best quality and the largest file.',
      }),
    ),
  ),
  stream: Type.Optional(
    Nullable(
      Type.Boolean({
        default: false,
        description: 'Whether to send the response as an event stream. Requires `n` of 1 and `b64_json`.',
      }),
    ),
  ),
  partial_images: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 0,
        maximum: 3,
        description:
          'Maximum number of previews in a stream, for models that generate previews and are not priced per image.',
      }),
    ),
  ),
  user: EndUser,
};

const imageText =
  'an https URL, a data URI or plain base64 of a PNG, JPEG, WebP or GIF image of at most 20 MB';

const oneOrMore = (description: string) =>
  Type.Optional(
    Type.Unsafe<string | string[] | null>({
      anyOf: [
        { type: 'string' },
        { type: 'array', items: { type: 'string' }, maxItems: defaultMaxInputImages },
        { type: 'null' },
      ],
      description,
    }),
  );

/** OpenAI's form of an image in a JSON body. */
const ImageReference = Type.Object({
  image_url: Type.Optional(Nullable(Type.String({ description: `${capitalize(imageText)}.` }))),
  file_id: Type.Optional(
    Nullable(
      Type.String({
        description: 'Not supported: the gateway does not store files. Send `image_url` instead.',
      }),
    ),
  ),
});
export type ImageReference = Static<typeof ImageReference>;

export const ImageRequest = Type.Object(
  {
    ...commonFields,
    image_url: oneOrMore(
      `Input images, each ${imageText}. They make the request an edit. For models whose ` +
        '`input_modalities` include `image`.',
    ),
    ...openAiFields,
    moderation: choice(['low', 'auto'], 'How strictly the vendor moderates content, if it supports this.'),
  },
  { title: 'ImageRequest' },
);
export type ImageRequest = Static<typeof ImageRequest>;

const editFields = {
  ...openAiFields,
  input_fidelity: choice(
    ['high', 'low'],
    'How closely the result matches the input images, if the vendor supports this. `high` is rejected if the ' +
      'model’s price does not cover it.',
  ),
};

export const ImageEditRequest = Type.Object(
  {
    ...commonFields,
    image_url: oneOrMore(
      `The images to edit or to use as references, each ${imageText}. Combined with \`image\` and \`images\`, in this ` +
        'order: at least one image in total, and at most the model’s `max_file_count`.',
    ),
    image: oneOrMore('The same as `image_url`, under OpenAI’s name.'),
    images: Type.Optional(
      Nullable(
        Type.Array(ImageReference, {
          maxItems: defaultMaxInputImages,
          description: 'The same as `image_url`, as objects.',
        }),
      ),
    ),
    mask: Type.Optional(
      Type.Unsafe<string | ImageReference | null>({
        anyOf: [{ type: 'string' }, ImageReference, { type: 'null' }],
        description:
          'A PNG with an alpha channel, smaller than 4 MB and with the dimensions of the first input image. Transparent ' +
          'areas mark where the image may be changed.',
      }),
    ),
    ...editFields,
  },
  { title: 'ImageEditRequest' },
);
export type ImageEditRequest = Static<typeof ImageEditRequest>;

/** The fields of an edit that contain images. */
export const imageFields = [
  'image',
  'images',
  'image_url',
  'mask',
] as const satisfies (keyof ImageEditRequest)[];

/** OpenAPI 3.1 marks bytes with `contentMediaType`, but generators of clients look for the older `format`. */
const file = (description: string) =>
  Type.Unsafe<Uint8Array>({
    type: 'string',
    format: 'binary',
    contentMediaType: 'application/octet-stream',
    description,
  });

/**
 * The same fields as a form, which OpenAI's clients use to send files. This schema is only for the OpenAPI document. The
 * form is converted to JSON and validated as JSON.
 */
export const ImageEditForm: TSchema = Type.Object(
  {
    ...commonFields,
    image: Type.Optional(
      Type.Array(file('One image.'), {
        description:
          'The images to edit, in order, one part per image. Name each part `image`, or `image[]` as OpenAI’s clients do ' +
          'for several images.',
      }),
    ),
    image_url: Type.Optional(Nullable(Type.String({ description: `${capitalize(imageText)}.` }))),
    mask: Type.Optional(file('A PNG with an alpha channel and the dimensions of the first image.')),
    ...editFields,
  },
  { title: 'ImageEditForm' },
);

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

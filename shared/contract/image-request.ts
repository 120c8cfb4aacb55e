import Type, { type Static, type TSchema } from 'typebox';
import { EndUser, Nullable, StringEnum } from './fields.ts';

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
  prompt: Type.String({ minLength: 3, description: 'What the image shows, or what is changed in it.' }),
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
        description: 'How many images; at most the model’s `max_image_count`. Each is paid for.',
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
  // No `default` keyword: a model without this size uses its first size if the caller specifies none.
  size: option(
    `One of the model’s sizes, as \`WIDTHxHEIGHT\`. ${defaultImageSize} unless set, or where it is \`auto\`; ` +
      'the model’s first size where it lacks that one. A model that lists no sizes makes that one only, unless its ' +
      'price is by tokens or time.',
  ),
  quality: option(
    'One of the model’s `image_quality.choices`; may change the price. Its default where it is `auto` or `standard`.',
  ),
  style: Type.Optional(
    Nullable(
      Type.String({
        description: 'Depends on the model, such as `vivid` or `natural`; counts as part of the prompt.',
      }),
    ),
  ),
};

/** Additional fields that OpenAI's clients may send. */
const openAiFields = {
  background: choice(
    ['transparent', 'opaque', 'auto'],
    'Of the image, for models that know it; `transparent` needs `png` or `webp`.',
  ),
  output_format: choice(
    ['png', 'jpeg', 'webp'],
    'The format of the image; the model’s own where it is left out.',
  ),
  output_compression: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 0,
        maximum: 100,
        description: 'Of `jpeg` and `webp`: 100 is the best quality and the largest file.',
      }),
    ),
  ),
  stream: Type.Optional(
    Nullable(
      Type.Boolean({
        default: false,
        description: 'Whether the answer comes as an event stream; for one image, as `b64_json`.',
      }),
    ),
  ),
  partial_images: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 0,
        maximum: 3,
        description:
          'How many previews a stream shows where the model makes any and is not priced per image; it may show fewer.',
      }),
    ),
  ),
  user: EndUser,
};

const imageText = 'an https URL, a data URI or base64, of a PNG, JPEG, WebP or GIF of at most 20 MB';

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
  file_id: Type.Optional(Nullable(Type.String({ description: 'Refused: no files are kept here.' }))),
});
export type ImageReference = Static<typeof ImageReference>;

export const ImageRequest = Type.Object(
  {
    ...commonFields,
    image_url: oneOrMore(
      `Input images, each ${imageText}. With them the request is an edit; for models whose ` +
        '`input_modalities` include `image`.',
    ),
    ...openAiFields,
    moderation: choice(['low', 'auto'], 'How strictly the vendor moderates, where it takes this.'),
  },
  { title: 'ImageRequest' },
);
export type ImageRequest = Static<typeof ImageRequest>;

const editFields = {
  ...openAiFields,
  input_fidelity: choice(
    ['high', 'low'],
    'How closely the result keeps to the input images, where the vendor takes this. `high` is refused where the ' +
      'price does not cover it.',
  ),
};

export const ImageEditRequest = Type.Object(
  {
    ...commonFields,
    image_url: oneOrMore(
      `The images to edit or to go by, each ${imageText}. Joined in this order with \`image\` and \`images\`; at ` +
        'least one in all, at most the model’s `max_file_count`.',
    ),
    image: oneOrMore('The same under OpenAI’s name.'),
    images: Type.Optional(
      Nullable(
        Type.Array(ImageReference, { maxItems: defaultMaxInputImages, description: 'The same as objects.' }),
      ),
    ),
    mask: Type.Optional(
      Type.Unsafe<string | ImageReference | null>({
        anyOf: [{ type: 'string' }, ImageReference, { type: 'null' }],
        description:
          'A PNG with an alpha channel, under 4 MB, with the dimensions of the first input image: where it is transparent ' +
          'the image may change.',
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
          'The images to edit, in their order: a part for each, all of them named `image`, or `image[]` as OpenAI’s ' +
          'clients name several.',
      }),
    ),
    image_url: Type.Optional(Nullable(Type.String({ description: `${capitalize(imageText)}.` }))),
    mask: Type.Optional(file('A PNG with an alpha channel, as large as the first image.')),
    ...editFields,
  },
  { title: 'ImageEditForm' },
);

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

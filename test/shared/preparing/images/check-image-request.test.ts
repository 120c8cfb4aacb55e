import test from 'ava';
import {
  checkImageRequest,
  type AnyImageRequest,
  type ImageOperation,
} from '../../../../shared/preparing/images/check-image-request.ts';
import { estimateImages } from '../../../../shared/preparing/images/estimate-images.ts';
import { parseCatalog } from '../../../../shared/catalog/parse-catalog.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { CountingTurn } from '../../../../shared/catalog/count-tokens.ts';
import { ImageEditRequest, ImageRequest } from '../../../../shared/contract/image-request.ts';
import { compileValidator } from '../../../../shared/contract/validation.ts';
import { tinyPng } from '../../../../shared/contract/image-stream.ts';

/** Validation of image requests against their model, and the tokens reserved for them. */

const catalog = parseCatalog(
  `
upstreams:
  open: { kind: openai, baseUrl: "http://127.0.0.1:1/v1" }
  google: { kind: gemini, apiKeys: [k] }
models:
  - { id: words, type: image, context: 1000, size: [512x512, 1024x1024], pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: open, model: gpt-image-1 }] }
  - id: editor
    type: image
    context: 1000
    max_output_tokens: 500
    max_file_count: 3
    input_modalities: [text, image]
    tokens_per_picture: 700
    image_quality: { default: low, choices: [low, high] }
    pricing: { prompt: 1, completion: 2 }
    routes: [{ upstream: open, model: gpt-image-1 }]
  - { id: plain-editor, type: image, context: 1000, input_modalities: [text, image], pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: open, model: gpt-image-1 }] }
  - { id: gemini, type: image, context: 1000, input_modalities: [text, image], max_output_tokens: 500, pricing: { prompt: 1, completion: 2 }, routes: [{ upstream: google, model: gemini-image }] }
  - { id: flat, type: image, context: 1000, input_modalities: [text, image], pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: open, model: gpt-image-1 }] }
  - { id: flat-newer, type: image, context: 1000, input_modalities: [text, image], max_file_count: 2, pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: open, model: gpt-image-2 }] }
  - { id: flat-default, type: image, context: 1000, image_quality: { default: hd }, pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: open, model: other }] }
  - { id: by-table, type: image, context: 1000, pricing: { type: image, cost_per_image_quality: { standard: { 1024x1024: 1 }, hd: { 1024x1024: 2, 1792x1024: 3 } } }, routes: [{ upstream: open, model: dall-e-3 }] }
  - { id: by-request, type: image, context: 1000, pricing: { type: request, cost_per_request: 1 }, routes: [{ upstream: open, model: other }] }
  - { id: by-time, type: image, context: 1000, input_modalities: [text, image], pricing: { type: time, cost_per_second: 1 }, routes: [{ upstream: open, model: other }] }
`,
  { env: {}, fileName: 'test', today: '2026-01-01' },
);

const link = 'https://pictures.test/a.png';
const uri = `data:image/png;base64,${tinyPng}`;

function check(model: string, more: Partial<AnyImageRequest> = {}, operation: ImageOperation = 'editImage') {
  return checkImageRequest({ model, prompt: 'a cat', ...more }, catalog.find(model)!, operation);
}

test('links, data URIs and base64 from all three fields form one ordered list with the field path of each', (t) => {
  const checked = check('plain-editor', {
    images: [{ image_url: link }, { image_url: tinyPng, file_id: null }],
    image: [uri, link],
    image_url: tinyPng,
    mask: { image_url: tinyPng },
  });
  t.deepEqual(checked.inputs, [uri, uri, link, link, uri]);
  t.deepEqual(
    checked.inputLocs.map((loc) => loc.join('.')),
    ['body.image_url', 'body.image.0', 'body.image.1', 'body.images.0.image_url', 'body.images.1.image_url'],
  );
  t.is(checked.mask, uri);
});

test('a generation with input images is an edit, and one without is not', (t) => {
  t.deepEqual(check('editor', { image_url: [link] }, 'createImage').inputs, [link]);
  for (const none of [null, '', []]) {
    t.deepEqual(check('editor', { image_url: none }, 'createImage').inputs, []);
  }
});

test('null fields are treated as absent, and with `auto` the default from the catalog applies', (t) => {
  const nulls = { n: null, size: null, quality: null, stream: null, partial_images: null, background: null };
  const checked = check('editor', { image: link, ...nulls });
  t.like(checked, { n: 1, size: '1024x1024', quality: 'low', partialImages: null });
  t.deepEqual(check('editor', { image: link, size: 'auto', quality: 'auto' }), checked);
  t.is(check('words', { size: 'auto' }, 'createImage').size, '1024x1024');
});

test('with a fixed price, a model without sizes takes 1024x1024 and auto, and one without qualities takes auto and standard', (t) => {
  for (const operation of ['createImage', 'editImage'] as const) {
    const input = operation === 'editImage' ? { image: link } : {};
    for (const size of [undefined, null, '', 'auto', '1024x1024'])
      for (const quality of [undefined, null, '', 'auto', 'standard']) {
        const options = {
          ...(size === undefined ? {} : { size }),
          ...(quality === undefined ? {} : { quality }),
        };
        t.like(check('flat', { ...input, ...options }, operation), { size: '1024x1024', quality: null });
      }
  }
  for (const quality of ['auto', 'standard', 'hd', null])
    t.is(check('flat-default', { quality }, 'createImage').quality, 'hd');
});

test('`standard` is the default quality of a model that does not have it, and itself of one that does', (t) => {
  t.is(check('editor', { image: link, quality: 'standard' }).quality, 'low');
  t.is(check('by-table', { quality: 'standard' }, 'createImage').quality, 'standard');
  t.is(check('by-table', {}, 'createImage').quality, null);
});

test('without a list, the sizes and qualities of a model are those that have a price', (t) => {
  t.like(check('by-table', { size: '1792x1024', quality: 'hd' }, 'createImage'), {
    size: '1792x1024',
    quality: 'hd',
  });
});

test('if the vendor’s tokens or time are charged, a size or quality that is not listed is passed on', (t) => {
  for (const model of ['plain-editor', 'by-time'])
    t.like(check(model, { size: '8192x8192', quality: 'high' }, 'createImage'), {
      size: '8192x8192',
      quality: 'high',
    });
  const more = { image: [link, link, link], input_fidelity: 'high' as const };
  t.is(check('by-time', more).inputs.length, 3);
  t.is(check('plain-editor', more).options.inputFidelity, 'high');
});

test('high fidelity is accepted where it does not reach the vendor', (t) => {
  t.is(check('flat-newer', { image: link, input_fidelity: 'high' }).options.inputFidelity, 'high');
  t.is(check('flat', { image: link, input_fidelity: 'low' }).options.inputFidelity, 'low');
});

test('an explicit size is distinguished from the default, even if they are equal', (t) => {
  t.false(check('words', {}, 'createImage').isSizeAsked);
  for (const size of [null, '', 'auto']) t.false(check('words', { size }, 'createImage').isSizeAsked);
  t.like(check('words', { size: '1024x1024' }, 'createImage'), { size: '1024x1024', isSizeAsked: true });
});

test('a stream shows the requested number of previews, and none by default', (t) => {
  t.is(check('editor', { image: link, stream: true }).partialImages, 0);
  t.is(check('editor', { image: link, stream: true, partial_images: 3 }).partialImages, 3);
  t.is(check('editor', { image: link, partial_images: 3 }).partialImages, null);
});

const invalidRequests: Readonly<
  Record<string, readonly [string, Partial<AnyImageRequest>, string, RegExp, ImageOperation?]>
> = {
  'an edit by a text-only model': ['words', { image: link }, 'model', /input_modalities include "image"/],
  'images for a text-only model': [
    'words',
    { image_url: link },
    'image_url',
    /remove image_url/,
    'createImage',
  ],
  'an edit without an image': ['editor', {}, 'image', /is required: send at least one image/],
  'more images than the model accepts': [
    'editor',
    { image: [link, link, link], image_url: link },
    'image.2',
    /at most 3/,
  ],
  'an http link': [
    'editor',
    { image: 'http://pictures.test/a.png' },
    'image',
    /must be a PNG.* or an https URL/,
  ],
  'base64 of something else': [
    'editor',
    { image: [link, 'JVBERi0xLjQ='] },
    'image.1',
    /must be a PNG.* or an https URL/,
  ],
  'a data URI of something else': [
    'editor',
    { image_url: 'data:image/png;base64,JVBERi0xLjQ=' },
    'image_url',
    /https URL/,
  ],
  'an OpenAI file id': [
    'editor',
    { images: [{ file_id: 'file-1' }] },
    'images.0.file_id',
    /file_id: is not supported/,
  ],
  'an object without an image': ['editor', { images: [{}] }, 'images.0.image_url', /is required/],
  'a mask that is not an image': [
    'editor',
    { image: link, mask: 'x' },
    'mask',
    /must be a PNG.* or an https URL/,
  ],
  'a mask that no route accepts': ['gemini', { image: link, mask: uri }, 'mask', /does not support masks/],
  'an unknown size': ['words', { size: '9x9' }, 'size', /must be one of: 512x512, 1024x1024/, 'createImage'],
  'an unknown quality': ['editor', { image: link, quality: 'best' }, 'quality', /must be one of: low, high/],
  'a quality of a model with one price': [
    'flat',
    { quality: 'high' },
    'quality',
    /must be omitted or auto: flat has only one quality/,
    'createImage',
  ],
  'a quality in an edit by a model with one price': [
    'flat',
    { image: link, quality: 'high' },
    'quality',
    /only one quality/,
  ],
  'a size of a model with one price': [
    'flat',
    { size: '8192x8192' },
    'size',
    /must be 1024x1024 or auto: flat supports no other size/,
    'createImage',
  ],
  'a size in an edit by a model with one price': [
    'flat',
    { image: link, size: '512x512' },
    'size',
    /no other size/,
  ],
  'a quality beside the only one': [
    'flat-default',
    { quality: 'high' },
    'quality',
    /must be one of: hd/,
    'createImage',
  ],
  'a quality without a price': [
    'by-table',
    { quality: 'high' },
    'quality',
    /must be one of: standard, hd/,
    'createImage',
  ],
  'a size without a price': [
    'by-table',
    { size: '1x1' },
    'size',
    /must be one of: 1024x1024, 1792x1024/,
    'createImage',
  ],
  'a size for a price per request': [
    'by-request',
    { size: '2048x2048' },
    'size',
    /no other size/,
    'createImage',
  ],
  'two images for a price per request': [
    'by-request',
    { n: 2 },
    'n',
    /must be <= 1 for by-request/,
    'createImage',
  ],
  'two input images for a price per image': [
    'flat',
    { image: [link, link] },
    'image.1',
    /accepts at most 1 input image\. /,
  ],
  'high fidelity for a price per image': [
    'flat',
    { image: link, input_fidelity: 'high' },
    'input_fidelity',
    /must be low or omitted: the price of flat does not include/,
  ],
  'a transparent JPEG': [
    'editor',
    { image: link, background: 'transparent', output_format: 'jpeg' },
    'background',
    /png or webp/,
  ],
  'a stream of two': ['editor', { image: link, stream: true, n: 2 }, 'n', /must be 1 when stream is true/],
  'a stream of links': [
    'editor',
    { image: link, stream: true, response_format: 'url' },
    'response_format',
    /b64_json/,
  ],
};

for (const [what, [model, more, field, expected, operation]] of Object.entries(invalidRequests)) {
  test(`${what} is rejected, with the field and how to fix it`, (t) => {
    const error = t.throws(() => check(model, more, operation), { instanceOf: AppError });
    t.is(error?.code, 'validation_failed');
    t.is(error?.param, field);
    t.regex(error?.message ?? '', expected);
  });
}

test('at most sixteen images are accepted if the catalog sets no limit', (t) => {
  const images = Array.from({ length: 17 }, () => link);
  t.is(check('plain-editor', { image: images.slice(1) }).inputs.length, 16);
  t.throws(() => check('plain-editor', { image: images }), { message: /at most 16 input images/ });
});

test('tokens are reserved for each input image, output image, preview and call', async (t) => {
  const estimate = (model: string, more: Partial<AnyImageRequest>) =>
    estimateImages(check(model, { image: link, ...more }), catalog.find(model)!, null, new CountingTurn());
  const words = 2;
  t.is((await estimate('editor', {})).promptTokens, words + 700);
  const masked = await estimate('editor', { image_url: link, mask: uri });
  t.is(masked.promptTokens, words + 3 * 700);
  t.is((await estimate('plain-editor', {})).promptTokens, words + 1_445);
  t.is((await estimate('editor', { n: 2 })).minUnits, 1_000);
  t.is((await estimate('editor', { stream: true, partial_images: 2 })).minUnits, 700);
  const [one, three] = [await estimate('gemini', {}), await estimate('gemini', { n: 3 })];
  t.is(three.fixedNano, one.fixedNano * 3n, 'Gemini reads the prompt and its images for each output');
});

const validate = {
  createImage: compileValidator(ImageRequest, 'body'),
  editImage: compileValidator(ImageEditRequest, 'body'),
};

test('null is accepted for every optional field, and unknown fields are ignored', (t) => {
  for (const [operation, { properties }] of [
    ['createImage', ImageRequest],
    ['editImage', ImageEditRequest],
  ] as const) {
    const nulls = Object.fromEntries(Object.keys(properties).map((field) => [field, null]));
    t.notThrows(() => validate[operation]({ ...nulls, model: 'm', prompt: 'cat', unheard_of: 1 }), operation);
  }
});

const outOfBounds: Readonly<Record<string, readonly unknown[]>> = {
  prompt: ['ab', null],
  n: [0, 5, 1.5, '1'],
  response_format: ['gif'],
  background: ['blue'],
  output_format: ['gif'],
  output_compression: [-1, 101],
  partial_images: [-1, 4],
  stream: ['true'],
  image_url: [1, [null], Array.from({ length: 17 }, () => link)],
};

for (const [field, values] of Object.entries(outOfBounds)) {
  test(`${field} has bounds, and a value beyond them is reported with its field`, (t) => {
    for (const [operation, check] of Object.entries(validate)) {
      for (const value of values) {
        const body = { model: 'm', prompt: 'cat', [field]: value };
        const error = t.throws(() => check(body), { instanceOf: AppError }, `${operation} ${String(value)}`);
        t.is(error?.issues[0]?.loc[1], field);
      }
    }
  });
}

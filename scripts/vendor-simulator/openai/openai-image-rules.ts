import type { SimulatedCall } from '../dialect.ts';
import { sniffImageType } from '../../../shared/contract/image-type.ts';
import { isLink, listFiles, readFileBytes, readNumber } from './openai-image-fields.ts';
import { readText } from '../json-record.ts';
import { readPngSize } from '../tiny-png.ts';

/** OpenAI's errors for image requests, by model family (OpenAI API reference: images). */

export interface ImageError {
  readonly message: string;
  readonly param: string;
}

type Body = Readonly<Record<string, unknown>>;

const commonFields = ['model', 'prompt', 'n', 'size', 'quality', 'user'];
const gptFields = ['background', 'output_format', 'output_compression', 'partial_images', 'stream'];
const fileFields = ['image', 'image[]', 'images', 'mask'];
const maxImages = 10;
const maxFiles = 16;
const maxPartials = 3;
const maxFileBytes = 50_000_000;
const maxMaskBytes = 4_000_000;

export function isGptImage(model: string): boolean {
  return model.includes('gpt-image-');
}

/** Returns null if the request is valid. For an unknown family, accepts every value that some family accepts. */
export function checkImageCall({ body, model }: SimulatedCall, isEdit: boolean): ImageError | null {
  return (
    checkNames(body, model, isEdit) ??
    checkValues(body, model) ??
    (isEdit ? (checkFiles(body, model) ?? checkMask(body)) : null)
  );
}

function checkNames(body: Body, model: string, isEdit: boolean): ImageError | null {
  const known = new Set(commonFields);
  const isDallE = model.includes('dall-e-');
  if (!isGptImage(model)) known.add('response_format');
  if (!isGptImage(model) && !isEdit && !model.includes('dall-e-2')) known.add('style');
  if (!isDallE) gptFields.forEach((name) => known.add(name));
  if (!isDallE && !isEdit) known.add('moderation');
  if (isEdit) fileFields.forEach((name) => known.add(name));
  if (isEdit && !isDallE && !model.includes('gpt-image-2')) known.add('input_fidelity');
  const unknown = Object.keys(body).find((name) => !known.has(name));
  return unknown === undefined ? null : invalidRequest(`Unknown parameter: '${unknown}'.`, unknown);
}

function checkValues(body: Body, model: string): ImageError | null {
  const n = readNumber(body['n']) ?? 1;
  const partials = readNumber(body['partial_images']) ?? 0;
  const compression = readNumber(body['output_compression']);
  const format = body['output_format'] ?? 'png';
  if (readText(body['prompt']) === '')
    return invalidRequest("Missing required parameter: 'prompt'.", 'prompt');
  if (!(n >= 1 && n <= maxImages)) return invalidRequest(`'n' must be from 1 to ${maxImages}.`, 'n');
  if (n > 1 && model.includes('dall-e-3')) return invalidRequest('You must provide n=1 for this model.', 'n');
  if (n > 1 && String(body['stream']) === 'true') return invalidRequest('Streaming is for n=1.', 'n');
  if (!(partials >= 0 && partials <= maxPartials)) {
    return invalidRequest(`'partial_images' must be from 0 to ${maxPartials}.`, 'partial_images');
  }
  if (body['background'] === 'transparent' && format === 'jpeg') {
    return invalidRequest('Transparent background is not supported for JPEG output format.', 'background');
  }
  if (compression !== null && format === 'png' && compression !== 100) {
    return invalidRequest(
      'Compression less than 100 is not supported for PNG output format.',
      'output_compression',
    );
  }
  return null;
}

function checkFiles(body: Body, model: string): ImageError | null {
  if (model.includes('dall-e-3')) return invalidRequest('This model does not edit images.', 'model');
  if (Array.isArray(body['image'])) {
    const message =
      "Duplicate parameter: 'image'. You provided multiple values for this parameter, whereas only one is allowed. If you are trying to provide a list of values, use the array syntax instead e.g. 'image[]=<value>'.";
    return invalidRequest(message, 'image');
  }
  const files = listFiles(body);
  if (files.length === 0) return invalidRequest("Missing required parameter: 'image'.", 'image');
  const max = model.includes('dall-e-2') ? 1 : maxFiles;
  if (files.length > max) return invalidRequest(`Too many images: ${max} at most.`, 'image');
  for (const file of files) {
    const bytes = readFileBytes(file);
    const type = bytes === null ? null : sniffImageType(bytes);
    if (!isLink(file) && (type === null || type === 'image/gif')) {
      return invalidRequest('Invalid image file or mode for image: it must be a PNG, JPEG or WebP.', 'image');
    }
    if ((bytes?.length ?? 0) > maxFileBytes) return invalidRequest('Image file too large.', 'image');
  }
  return null;
}

function checkMask(body: Body): ImageError | null {
  if ((body['mask'] ?? null) === null || isLink(body['mask'])) return null;
  const bytes = readFileBytes(body['mask']);
  const size = bytes === null ? null : readPngSize(bytes);
  if (bytes === null || size === null) return invalidRequest('Invalid mask: it must be a PNG.', 'mask');
  if (bytes.length >= maxMaskBytes)
    return invalidRequest('Invalid mask: it must be smaller than 4 MB.', 'mask');
  const image = readPngSize(readFileBytes(listFiles(body)[0]) ?? Buffer.alloc(0));
  // The size of other formats is not read here.
  const isSame = image === null || (image.width === size.width && image.height === size.height);
  return isSame
    ? null
    : invalidRequest('Invalid mask image: its size does not match that of the image.', 'mask');
}

function invalidRequest(message: string, param: string): ImageError {
  return { message, param };
}

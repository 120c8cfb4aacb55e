import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import { isDataUri } from '../../contract/data-uri.ts';
import { invalidField } from '../../contract/errors.ts';
import {
  defaultMaxInputImages,
  type ImageEditRequest,
  type ImageReference,
} from '../../contract/image-request.ts';
import { isFixedPrice } from '../../catalog/fixed-price.ts';
import { sniffImageType } from '../../contract/image-type.ts';
import { findImageUrlProblem } from '../../contract/image-url.ts';

type Location = readonly (string | number)[];

/** An https link or a data URI, and its location in the body. */
export interface ImageInput {
  readonly url: string;
  readonly loc: Location;
}

/** The image fields of both operations. */
export type ImageFields = Pick<ImageEditRequest, 'image' | 'images' | 'image_url' | 'mask'>;

/**
 * Lists the input images of a request: `image_url`, then `image`, then `images`. Each becomes an https link or a data
 * URI and keeps its location in the body for errors found later.
 * @throws AppError if an image is neither, or if there are more images than the model accepts
 */
export function listImageInputs(body: ImageFields, model: CatalogModel): ImageInput[] {
  const inputs = [
    ...listTexts(body.image_url, 'image_url'),
    ...listTexts(body.image, 'image'),
    ...(body.images ?? []).map((image, i) => readReference(image, ['body', 'images', i])),
  ];
  // Vendors bill each input image, which a fixed price does not.
  const maxInputs =
    model.published.max_file_count ?? (isFixedPrice(model.pricing) ? 1 : defaultMaxInputImages);
  const firstExcess = inputs[maxInputs];
  if (firstExcess !== undefined) {
    const msg = `exceeds the limit: ${model.id} accepts at most ${maxInputs} input image${maxInputs === 1 ? '' : 's'}. Send fewer.`;
    throw invalidField(firstExcess.loc, msg);
  }
  return inputs;
}

/** @throws AppError if the mask is neither a link, nor a data URI, nor a base64 image */
export function readMask({ mask }: ImageFields): ImageInput | null {
  if (mask === undefined || mask === null || mask === '') return null;
  const loc = ['body', 'mask'];
  return typeof mask === 'string' ? readText(mask, loc) : readReference(mask, loc);
}

function listTexts(value: string | readonly string[] | null | undefined, field: string): ImageInput[] {
  // Some clients send an empty string for an absent field.
  if (value === undefined || value === null || value === '') return [];
  if (typeof value === 'string') return [readText(value, ['body', field])];
  return value.map((text, i) => readText(text, ['body', field, i]));
}

function readReference({ image_url: url, file_id: fileId }: ImageReference, loc: Location): ImageInput {
  if (typeof fileId === 'string') {
    const msg = 'is not supported. Send the image as image_url: an https URL or a data URI.';
    throw invalidField([...loc, 'file_id'], msg);
  }
  const urlLoc = [...loc, 'image_url'];
  if (typeof url !== 'string') throw invalidField(urlLoc, 'is required', { type: 'required' });
  return readText(url, urlLoc);
}

const sniffedChars = 64;
const notAnImage =
  'must be a PNG, JPEG, WebP or GIF image of at most 20 MB (a form file, a data URI or base64), or an https URL of at ' +
  'most 2083 characters';

function readText(text: string, loc: Location): ImageInput {
  const url = text.startsWith('https://') || isDataUri(text) ? text : toDataUri(text);
  const problem = url === null ? null : findImageUrlProblem(url);
  if (url === null || problem !== null) {
    const why = problem === null ? '' : `; ${problem.msg}`;
    throw invalidField(loc, `${notAnImage}${why}`, { type: 'format' });
  }
  return { url, loc };
}

/** Detects the type of bare base64 by its first bytes. */
function toDataUri(base64: string): string | null {
  const type = sniffImageType(Buffer.from(base64.slice(0, sniffedChars), 'base64'));
  return type === null ? null : `data:${type};base64,${base64}`;
}

import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import { findDefaultSize, listQualities, listSizes } from '../../catalog/image-options.ts';
import { invalidField } from '../../contract/errors.ts';
import { defaultImageSize, type ImageEditRequest, type ImageRequest } from '../../contract/image-request.ts';
import { countsImages, isFixedPrice } from '../../catalog/fixed-price.ts';
import { sendsInputFidelity } from '../../routing/image-models.ts';
import { findUnmetImageNeed, toImageRequirements } from '../../routing/image-needs.ts';
import type { ImageJob, ImageOptions } from '../../work/queue/job-kinds.ts';
import { listImageInputs, readMask } from './image-inputs.ts';

const defaultMaxImages = 4;

/** The body of either operation. Fields that an operation does not have are never set. */
export type AnyImageRequest = ImageRequest &
  Pick<Partial<ImageEditRequest>, 'image' | 'images' | 'mask' | 'input_fidelity'>;

export type ImageOperation = 'createImage' | 'editImage';

/** The image request with defaults filled in, in the form that the job contains. */
export type CheckedImageRequest = Omit<ImageJob, 'v' | 'kind' | 'request' | 'replyChannel'>;

/**
 * Checks fields that depend on the model or on other fields.
 * @throws AppError `validation_failed`
 */
export function checkImageRequest(
  body: AnyImageRequest,
  model: CatalogModel,
  operation: ImageOperation,
): CheckedImageRequest {
  const n = body.n ?? 1;
  const maxImages = model.published.max_image_count ?? (countsImages(model.pricing) ? defaultMaxImages : 1);
  if (n > maxImages) throw invalidField(['body', 'n'], `must be <= ${maxImages} for ${model.id}`);
  const { prompt, negative_prompt: negativePrompt = null, style = null } = body;
  const checked: CheckedImageRequest = {
    operation,
    prompt,
    negativePrompt,
    style,
    n,
    size: chooseSize(body, model),
    isSizeAsked: Boolean(body.size) && body.size !== autoChoice,
    quality: chooseQuality(body, model),
    responseFormat: body.response_format ?? 'b64_json',
    ...readInputs(body, model, operation),
    options: readOptions(body, model),
    partialImages: readPartialImages(body, n),
  };
  checkNeeds(checked, model);
  return checked;
}

/** Rejects a request that no route can serve. If only some routes can serve it, only those are called. */
function checkNeeds(checked: CheckedImageRequest, { id, routes }: CatalogModel): void {
  const requirements = toImageRequirements(checked);
  const unmet = routes.map((route) => findUnmetImageNeed(route, requirements));
  const first = unmet[0] ?? null;
  if (first === null || unmet.includes(null)) return;
  const loc = first.field === 'image_url' ? checked.inputLocs[0] : undefined;
  throw invalidField(
    loc ?? ['body', first.field],
    `${id} ${first.why}: change the request, or choose another model`,
  );
}

/** The value that OpenAI's clients send to let the model choose a size or quality. */
const autoChoice = 'auto';
/** The quality that clients of OpenAI's older models send by default. */
const oldDefaultQuality = 'standard';

/**
 * A size or quality that the entry does not list may cost more at the vendor. So a model with a fixed price takes only
 * what is listed.
 */
function chooseSize({ size: requested }: AnyImageRequest, { id, pricing, published }: CatalogModel): string {
  const sizes = listSizes(published);
  if (requested && sizes.includes(requested)) return requested;
  if (requested && requested !== autoChoice) {
    if (sizes.length > 0) throw invalidField(['body', 'size'], `must be one of: ${sizes.join(', ')}`);
    if (isFixedPrice(pricing) && requested !== defaultImageSize) {
      throw invalidField(
        ['body', 'size'],
        `must be ${defaultImageSize} or auto: ${id} supports no other size`,
      );
    }
    return requested;
  }
  return findDefaultSize(published);
}

function chooseQuality(
  { quality: requested }: AnyImageRequest,
  { id, pricing, published }: CatalogModel,
): string | null {
  const qualities = listQualities(published);
  const byDefault = published.image_quality?.default ?? null;
  if (!requested) return byDefault;
  if (qualities.includes(requested)) return requested;
  if (requested === autoChoice || requested === oldDefaultQuality) return byDefault;
  if (qualities.length > 0) {
    throw invalidField(['body', 'quality'], `must be one of: ${qualities.join(', ')}`);
  }
  if (isFixedPrice(pricing)) {
    throw invalidField(['body', 'quality'], `must be omitted or auto: ${id} has only one quality`);
  }
  return requested;
}

function readInputs(
  body: AnyImageRequest,
  model: CatalogModel,
  operation: ImageOperation,
): Pick<ImageJob, 'inputs' | 'inputLocs' | 'mask'> {
  const isEdit = operation === 'editImage';
  const takesImages = model.published.input_modalities?.includes('image') ?? false;
  if (isEdit && !takesImages) {
    const msg =
      `${model.id} generates images from text only and does not accept input images. Choose a model whose ` +
      'input_modalities include "image" (GET /v1/models?type=image), or send the prompt to /v1/images/generations.';
    throw invalidField(['body', 'model'], msg);
  }
  if (!takesImages && (body.image_url ?? '').length > 0) {
    const msg = `${model.id} generates images from text only: remove image_url, or choose another model`;
    throw invalidField(['body', 'image_url'], msg);
  }
  const inputs = listImageInputs(body, model);
  if (isEdit && inputs.length === 0) {
    const msg = 'is required: send at least one image to edit, as image, image_url or images';
    throw invalidField(['body', 'image'], msg, { type: 'required' });
  }
  return {
    inputs: inputs.map(({ url }) => url),
    inputLocs: inputs.map(({ loc }) => loc),
    mask: isEdit ? (readMask(body)?.url ?? null) : null,
  };
}

function readOptions(body: AnyImageRequest, { id, pricing, routes }: CatalogModel): ImageOptions {
  const {
    background = null,
    output_format: outputFormat = null,
    input_fidelity: inputFidelity = null,
  } = body;
  if (inputFidelity === 'high' && isFixedPrice(pricing) && routes.some(sendsInputFidelity)) {
    const msg = `must be low or omitted: the price of ${id} does not include high-fidelity input images`;
    throw invalidField(['body', 'input_fidelity'], msg);
  }
  if (background === 'transparent' && outputFormat === 'jpeg') {
    const msg = 'cannot be transparent in a JPEG: set output_format to png or webp';
    throw invalidField(['body', 'background'], msg);
  }
  return {
    background,
    moderation: body.moderation ?? null,
    outputFormat,
    outputCompression: body.output_compression ?? null,
    inputFidelity,
  };
}

/** Returns the number of partial images to stream; null if the response is not streamed. */
function readPartialImages(body: AnyImageRequest, n: number): number | null {
  if (body.stream !== true) return null;
  if (n > 1)
    throw invalidField(['body', 'n'], 'must be 1 when stream is true: only one image can be streamed');
  if (body.response_format === 'url') {
    const msg = 'must be b64_json when stream is true: the events contain the image itself';
    throw invalidField(['body', 'response_format'], msg);
  }
  return body.partial_images ?? 0;
}

import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import { listQualities } from '../../catalog/image-options.ts';
import { requestsSearch } from '../../catalog/search-allowance.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import { invalidField } from '../../contract/errors.ts';
import { isFixedPrice } from '../../catalog/fixed-price.ts';

/** Values of OpenAI's clients that leave the choice to the model. No dialect sends them. */
const leavesItToModel = new Set(['auto', 'standard']);

/**
 * Checks the options that change what the vendor charges. Their values must be listed in the model's entry, or, where it
 * lists none, must not raise the vendor's charge above a price that stays the same.
 * @throws AppError `validation_failed`
 */
export function checkPriceOptions(body: ChatRequest, model: CatalogModel): void {
  checkImageOptions(body, model);
  checkEffort(body, model);
  if (!isFixedPrice(model.pricing)) return;
  const { id, alwaysMaySearch, published } = model;
  if (requestsSearch(body) && published.web_search !== true && !alwaysMaySearch) {
    const name = body.web_search ? 'web_search' : 'web_search_options';
    const msg = `must be omitted: the price of a request to ${id} does not include web search`;
    throw invalidField(['body', name], msg);
  }
}

/** The quality of images that a chat requests; the model's default if it leaves that to the model. */
export function chooseImageQuality(body: ChatRequest, { published }: CatalogModel): string | null {
  const requested = body.image_quality ?? body.quality ?? null;
  const isLeft = requested !== null && leavesItToModel.has(requested);
  if (requested !== null && (!isLeft || listQualities(published).includes(requested))) return requested;
  return published.image_quality?.default ?? null;
}

function checkImageOptions(body: ChatRequest, { id, pricing, published }: CatalogModel): void {
  const name = (body.image_quality ?? null) === null ? 'quality' : 'image_quality';
  const quality = body[name] ?? null;
  const qualities = listQualities(published);
  if (quality !== null && !qualities.includes(quality) && !leavesItToModel.has(quality)) {
    if (qualities.length > 0) throw invalidField(['body', name], `must be one of: ${qualities.join(', ')}`);
    const mayMakeImages = published.output_modalities?.includes('image') ?? true;
    if (isFixedPrice(pricing) && mayMakeImages)
      throw invalidField(['body', name], `must be omitted or auto: ${id} has only one quality`);
  }
  const size = body.size ?? null;
  const sizes = published.size ?? [];
  if (size !== null && size !== 'auto' && sizes.length > 0 && !sizes.includes(size))
    throw invalidField(['body', 'size'], `must be one of: ${sizes.join(', ')}`);
}

function checkEffort(
  { reasoning_effort: effort }: ChatRequest,
  { id, pricing, published }: CatalogModel,
): void {
  const spec = published.reasoning_effort;
  if (effort === null || effort === undefined || effort === spec?.default) return;
  if (spec?.choices) {
    if (!spec.choices.includes(effort))
      throw invalidField(['body', 'reasoning_effort'], `must be one of: ${spec.choices.join(', ')}`);
  } else if (isFixedPrice(pricing) && published.reasoning !== false) {
    const msg = `must be omitted: a request to ${id} costs the same at every reasoning effort`;
    throw invalidField(['body', 'reasoning_effort'], msg);
  }
}

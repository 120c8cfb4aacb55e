import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import { tokensPerPreview } from '../../catalog/usage-bounds.ts';
import { invalidField } from '../../contract/errors.ts';
import { countTokensAsync, type CountingTurn } from '../../catalog/count-tokens.ts';
import { countImageCharacters } from '../../catalog/image-characters.ts';
import { countImageCalls } from '../../routing/image-needs.ts';
import { estimateWhole, findWorstCase, type Estimate } from '../../money/estimate.ts';
import type { CheckedImageRequest } from './check-image-request.ts';

/**
 * Estimates the maximum cost of an image request, in the units of its price.
 * @throws AppError `content_too_long`
 */
export async function estimateImages(
  checked: CheckedImageRequest,
  model: CatalogModel,
  user: string | null,
  turn: CountingTurn,
): Promise<Estimate> {
  const { n, size, quality, inputs, mask, partialImages } = checked;
  const imageCount = inputs.length + (mask === null ? 0 : 1);
  const promptTokens = (await countPrompt(checked, model, turn)) + imageCount * model.tokensPerImage;
  // A vendor that generates one image per call reads and bills the prompt for each image.
  const maxCalls = Math.max(1, ...model.routes.map((route) => countImageCalls(route, n)));
  const usage = {
    promptTokens: promptTokens * maxCalls,
    images: n,
    imageQuality: quality,
    imageSize: size,
    characters: countImageCharacters(checked),
  };
  // If there are not enough call slots, the calls run one after the other, so assume the total duration.
  const worst = findWorstCase(model, usage, (route) => countImageCalls(route, n));
  // `maxOutputTokens` is per image.
  const outputTokens = (model.maxOutputTokens + (partialImages ?? 0) * tokensPerPreview) * n;
  return estimateWhole({ model, promptTokens, user }, worst, outputTokens);
}

/** Tokens for the `Style:` and `Avoid:` labels, added to the prompt if a vendor has no such fields. */
const labelTokens = 8;

/** Counts the tokens of the caller's texts that are sent to the vendor. @throws AppError `content_too_long` */
async function countPrompt(
  { prompt, negativePrompt, style }: CheckedImageRequest,
  model: CatalogModel,
  turn: CountingTurn,
): Promise<number> {
  const texts = { prompt, negative_prompt: negativePrompt, style };
  let promptTokens = 0;
  for (const [field, text] of Object.entries(texts)) {
    if (text === null || text === '') continue;
    const limit = model.context - promptTokens;
    const tokens = await countTokensAsync(text, { limit, turn, encoding: model.tokenizer });
    if (tokens === null) {
      const whole = field === 'prompt' ? 'The prompt is' : `The prompt and the ${field} together are`;
      const msg = `${whole} longer than the model's context of ${model.context} tokens. Shorten the text.`;
      throw invalidField(['body', field], msg, { code: 'content_too_long' });
    }
    promptTokens += tokens + (field === 'prompt' ? 0 : labelTokens);
  }
  return promptTokens;
}

import type { CatalogRoute } from '../catalog/catalog-schema.ts';

/**
 * Derives the family of an image model from its name. OpenAI's API serves several families at one address, and each
 * rejects parameters meant for another (OpenAI API reference, images).
 */

export type ImageFamily = 'gpt-image' | 'dall-e-3' | 'dall-e-2' | 'other';

/** Matches `gpt-image-1` and `chatgpt-image-latest`, also behind an aggregator's prefix (`openai/gpt-image-1`). */
const gptImageModel = /(?:^|\/)(?:chat)?gpt-image-/;
const dallEModel = /(?:^|\/)dall-e-([23])/;
/** Models that reject `input_fidelity`: they always preserve their inputs as well as they can, or cannot at all. */
const withoutFidelity = /(?:^|\/)gpt-image-(?:2|1-mini)/;

export function findImageFamily(model: string): ImageFamily {
  if (gptImageModel.test(model)) return 'gpt-image';
  const [, version] = dallEModel.exec(model) ?? [];
  return version === undefined ? 'other' : version === '3' ? 'dall-e-3' : 'dall-e-2';
}

export function supportsInputFidelity(model: string): boolean {
  return findImageFamily(model) === 'gpt-image' && !withoutFidelity.test(model);
}

/** Whether `input_fidelity` reaches the vendor, which reads, and bills, more of the input images with `high`. */
export function sendsInputFidelity({
  upstream,
  model,
  drops,
}: Pick<CatalogRoute, 'upstream' | 'model' | 'drops'>): boolean {
  if (upstream.kind !== 'openai' || drops.has('input_fidelity')) return false;
  return supportsInputFidelity(model) || findImageFamily(model) === 'other';
}

/**
 * Whether several images require several calls, because the model makes one image per call or its server does not
 * support `n`.
 */
export function makesOneImagePerCall(model: string, drops: ReadonlySet<string>): boolean {
  return findImageFamily(model) === 'dall-e-3' || drops.has('n');
}

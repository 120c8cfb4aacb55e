/**
 * What the names of image models tell: OpenAI's API has one address for several families, and each refuses what is meant
 * for another (OpenAI API reference, images).
 */

export type ImageFamily = 'gpt-image' | 'dall-e-3' | 'dall-e-2' | 'other';

/** `gpt-image-1`, `chatgpt-image-latest`, also behind a prefix as aggregators have it (`openai/gpt-image-1`). */
const gptImageModel = /(?:^|\/)(?:chat)?gpt-image-/;
const dallEModel = /(?:^|\/)dall-e-([23])/;
/** These keep as much of their inputs as they can anyway, or cannot, and refuse to be told. */
const withoutFidelity = /(?:^|\/)gpt-image-(?:2|1-mini)/;

export function findImageFamily(model: string): ImageFamily {
  if (gptImageModel.test(model)) return 'gpt-image';
  const [, version] = dallEModel.exec(model) ?? [];
  return version === undefined ? 'other' : version === '3' ? 'dall-e-3' : 'dall-e-2';
}

export function takesInputFidelity(model: string): boolean {
  return findImageFamily(model) === 'gpt-image' && !withoutFidelity.test(model);
}

/** Whether several images are as many calls: the model makes one a call, or its server knows no `n`. */
export function makesOneImageACall(model: string, drops: ReadonlySet<string>): boolean {
  return findImageFamily(model) === 'dall-e-3' || drops.has('n');
}

/** The words that an image is made from. */
export interface ImageWords {
  readonly prompt: string;
  readonly negativePrompt: string | null;
  readonly style: string | null;
}

/** What a model that is paid by characters charges for: the same at admission and at settlement. */
export function countImageCharacters({ prompt, negativePrompt, style }: ImageWords): number {
  return prompt.length + (negativePrompt?.length ?? 0) + (style?.length ?? 0);
}

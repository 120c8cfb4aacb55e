/** The texts that an image is generated from. */
export interface ImageTexts {
  readonly prompt: string;
  readonly negativePrompt: string | null;
  readonly style: string | null;
}

/** The characters that are billed if a model's price is per character; the same at admission and at settlement. */
export function countImageCharacters({ prompt, negativePrompt, style }: ImageTexts): number {
  return prompt.length + (negativePrompt?.length ?? 0) + (style?.length ?? 0);
}

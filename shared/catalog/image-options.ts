import { defaultImageSize } from '../contract/image-request.ts';
import type { Pricing } from '../contract/models.ts';

interface ImagePricing {
  readonly size?: readonly string[] | null | undefined;
  readonly image_quality?:
    | {
        readonly default?: string | null | undefined;
        readonly choices?: readonly string[] | null | undefined;
      }
    | null
    | undefined;
  readonly pricing: Pick<Pricing, 'cost_per_image_quality'>;
}

/** The qualities of a model: those that its entry lists, or else those that have a price. */
export function listQualities({ image_quality: option, pricing }: ImagePricing): readonly string[] {
  if (option?.choices) return option.choices;
  const priced = Object.keys(pricing.cost_per_image_quality ?? {});
  const byDefault = option?.default ?? null;
  return byDefault === null || priced.includes(byDefault) ? priced : [byDefault, ...priced];
}

/** The sizes of a model: those that its entry lists, or else those that have a price. */
export function listSizes({ size, pricing }: ImagePricing): readonly string[] {
  if (size) return size;
  const prices = Object.values(pricing.cost_per_image_quality ?? {});
  return [...new Set(prices.flatMap((price) => (typeof price === 'number' ? [] : Object.keys(price))))];
}

/** The size of an image whose request names none. */
export function findDefaultSize(model: ImagePricing): string {
  const sizes = listSizes(model);
  return sizes.includes(defaultImageSize) ? defaultImageSize : (sizes[0] ?? defaultImageSize);
}

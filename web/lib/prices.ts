import type { Pricing } from './models.ts';

/** Each of the unit that its text names: `priceInput` is per million tokens. */
export interface PriceLine {
  readonly text:
    | 'priceInput'
    | 'priceOutput'
    | 'priceCached'
    | 'priceCacheWrite'
    | 'priceAnyToken'
    | 'priceImage'
    | 'priceSecond'
    | 'priceCharacters'
    | 'priceRequest';
  readonly roubles: number;
}

type TokenPrices = Pick<Pricing, 'prompt' | 'completion' | 'input_cache_read' | 'input_cache_write'>;

/** Prices per million tokens, in the order in which the cost of a request is computed. */
export function readTokenPrices(pricing: Pricing): { input: number | null; output: number | null } {
  return {
    input: pricing.prompt ?? pricing.in_cost_per_million ?? pricing.cost_per_million ?? null,
    output: pricing.completion ?? pricing.out_cost_per_million ?? pricing.cost_per_million ?? null,
  };
}

const line = (text: PriceLine['text'], roubles: number | null | undefined): PriceLine[] =>
  roubles === null || roubles === undefined ? [] : [{ text, roubles }];

/** The prices of an override, or of prompts that reach none. */
export const listTokenLines = (prices: TokenPrices): PriceLine[] => [
  ...line('priceInput', prices.prompt),
  ...line('priceCached', prices.input_cache_read),
  ...line('priceCacheWrite', prices.input_cache_write),
  ...line('priceOutput', prices.completion),
];

/** What is charged, line by line. Images that cost different amounts are in `readImagePrices`. */
export function listPrices(pricing: Pricing): PriceLine[] {
  switch (pricing.type) {
    case 'image':
      return readImagePrices(pricing).length > 0 ? [] : line('priceImage', pricing.cost_per_image);
    case 'time':
      return line('priceSecond', pricing.cost_per_second);
    case 'characters':
      return line('priceCharacters', pricing.cost_per_million);
    case 'request':
      return line('priceRequest', pricing.cost_per_request);
    default: {
      const { input, output } = readTokenPrices(pricing);
      const hasOnePrice = input !== null && input === output && input === pricing.cost_per_million;
      if (hasOnePrice) return line('priceAnyToken', input);
      return listTokenLines({ ...pricing, prompt: input, completion: output });
    }
  }
}

export interface ImagePrice {
  readonly quality: string;
  /** Null if all sizes cost the same. */
  readonly size: string | null;
  readonly roubles: number;
}

/** The prices of images by quality and size; empty if all cost the same. */
export const readImagePrices = ({ cost_per_image_quality: table }: Pricing): ImagePrice[] =>
  Object.entries(table ?? {}).flatMap(([quality, price]): ImagePrice[] =>
    typeof price === 'number'
      ? [{ quality, size: null, roubles: price }]
      : Object.entries(price as Record<string, number>).map(([size, roubles]) => ({
          quality,
          size,
          roubles,
        })),
  );

import type { Pricing } from '../contract/models.ts';

/**
 * Whether a price stays the same however much the vendor charges for a request: it is by image, request or character,
 * not by the tokens that the vendor counts or by the time that it takes.
 */
export function isFixedPrice({ type }: Pick<Pricing, 'type'>): boolean {
  return type !== 'tokens' && type !== 'time';
}

/** Whether the price of a request grows with the number of its images. */
export function countsImages({ type }: Pick<Pricing, 'type'>): boolean {
  return type !== 'request' && type !== 'characters';
}

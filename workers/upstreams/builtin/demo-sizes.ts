import { UpstreamError } from '../upstream.ts';

/** Valid values of `size` for the built-in models. */
const demoImageSizes = ['256x256', '512x512', '1024x1024'] as const;
const maxDemoCount = 4;

export interface DemoSize {
  readonly width: number;
  readonly height: number;
}

/**
 * Returns null for `auto`, which keeps the image's size.
 * @throws UpstreamError `rejected`
 */
export function readDemoSize(size: string): DemoSize | null {
  if (size === 'auto') return null;
  if (!demoImageSizes.some((known) => known === size)) {
    throw new UpstreamError('rejected', `size must be one of ${demoImageSizes.join(', ')}`);
  }
  const [width = 0, height = 0] = size.split('x').map(Number);
  return { width, height };
}

/** @throws UpstreamError `rejected` */
export function checkDemoCount(n: number): void {
  if (!Number.isInteger(n) || n < 1 || n > maxDemoCount) {
    throw new UpstreamError('rejected', `n must be from 1 to ${maxDemoCount}`);
  }
}

import type openSharp from 'sharp';
import type { Sharp } from 'sharp';

/** Decoded pixels, four bytes each: red, green, blue, alpha. */
export interface Raster {
  readonly data: Buffer;
  readonly width: number;
  readonly height: number;
}

export const transparent = { r: 0, g: 0, b: 0, alpha: 0 } as const;

/** Loads sharp, configured to use little memory: one thread per image, and no cache, because nothing is used twice. */
export async function loadSharp(): Promise<typeof openSharp> {
  const { default: sharp } = await import('sharp');
  sharp.concurrency(1);
  sharp.cache(false);
  return sharp;
}

export async function openRaster({ data, width, height }: Raster): Promise<Sharp> {
  const sharp = await loadSharp();
  return sharp(data, { raw: { width, height, channels: 4 } });
}

export async function toRaster(image: Sharp): Promise<Raster> {
  const { data, info } = await image
    .toColourspace('srgb')
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return { data, width: info.width, height: info.height };
}

import { UpstreamError } from '../../upstream.ts';
import type { PosterFont } from '../poster/poster-font.ts';
import { composeCaption } from './compose-caption.ts';
import type { ImageEdit } from './parse-edits.ts';
import { transparent, openRaster, type Raster, toRaster } from './raster.ts';

/** Maximum side of every intermediate image: each takes up to 16 MB, and there are up to four. */
export const maxSide = 2_048;
const maxEdits = 10;
/** The luminance of red, green and blue (ITU-R BT.709). */
const luma: [number, number, number] = [0.2126, 0.7152, 0.0722];

/**
 * Applies edits in order.
 * @throws UpstreamError `rejected` if there are too many, or an image becomes too large; the signal's reason when it is
 * aborted
 */
export async function applyEdits(
  source: Raster,
  edits: readonly ImageEdit[],
  font: PosterFont,
  signal: AbortSignal,
): Promise<Raster> {
  if (edits.length > maxEdits) {
    throw new UpstreamError('rejected', `The prompt has ${edits.length} edits; the maximum is ${maxEdits}.`);
  }
  let image = source;
  for (const edit of edits) {
    signal.throwIfAborted();
    image = await applyEdit(image, edit, font);
  }
  return image;
}

async function applyEdit(image: Raster, edit: ImageEdit, font: PosterFont): Promise<Raster> {
  const { width, height } = image;
  const sharpImage = await openRaster(image);
  switch (edit.kind) {
    case 'resize':
      return await resize(image, edit.width, edit.height);
    case 'scale':
      return await resize(image, (width * edit.percent) / 100, (height * edit.percent) / 100);
    case 'rotate': {
      const turned = await toRaster(sharpImage.rotate(edit.degrees, { background: transparent }));
      return await shrinkToBounds(turned);
    }
    case 'grayscale':
      return await toRaster(sharpImage.recomb([luma, luma, luma]));
    case 'blur':
      return await blur(image, edit.sigma);
    case 'caption': {
      const svg = Buffer.from(composeCaption(edit.text, width, height, font));
      return await toRaster(sharpImage.composite([{ input: svg, left: 0, top: 0 }]));
    }
    default:
      return edit satisfies never;
  }
}

/**
 * Blurs a shrunken copy, because the time of a blur grows with its sigma. Shrinking loses only details that the blur
 * would remove anyway.
 */
async function blur(image: Raster, sigma: number): Promise<Raster> {
  const { width, height } = image;
  const factor = Math.max(1, Math.floor(sigma / 4));
  const small = await resizeTo(image, Math.ceil(width / factor), Math.ceil(height / factor));
  const blurred = await toRaster((await openRaster(small)).blur(Math.max(0.3, sigma / factor)));
  return await resizeTo(blurred, width, height);
}

async function resize(image: Raster, width: number, height: number): Promise<Raster> {
  const [wide, high] = [Math.round(width), Math.round(height)];
  if (wide < 1 || high < 1 || wide > maxSide || high > maxSide) {
    const message = `The prompt requests an image of ${wide}x${high}; each side must be from 1 to ${maxSide} pixels.`;
    throw new UpstreamError('rejected', message);
  }
  return await resizeTo(image, wide, high);
}

export async function resizeTo(image: Raster, width: number, height: number): Promise<Raster> {
  if (image.width === width && image.height === height) return image;
  return await toRaster((await openRaster(image)).resize(width, height, { fit: 'fill' }));
}

/** Keeps the aspect ratio. */
async function shrinkToBounds(image: Raster): Promise<Raster> {
  if (image.width <= maxSide && image.height <= maxSide) return image;
  return await toRaster((await openRaster(image)).resize(maxSide, maxSide, { fit: 'inside' }));
}

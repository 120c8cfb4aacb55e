import type { CallContext, ImageCall } from '../upstream.ts';
import { loadSharp } from './edit/raster.ts';

/** How much coarser the last preview is than the image; each one before it is twice as coarse. */
const lastFactor = 8;

/** Sends previews like those of a model that generates an image step by step: from coarse to fine. */
export async function sendPreviews(
  bytes: Buffer,
  { partialImages, onPartial }: ImageCall,
  { signal }: CallContext,
): Promise<void> {
  const count = onPartial === undefined ? 0 : (partialImages ?? 0);
  if (count === 0) return;
  const sharp = await loadSharp();
  const { width, height } = await sharp(bytes).metadata();
  for (let index = 0; index < count; index++) {
    const factor = lastFactor * 2 ** (count - 1 - index);
    const shrink = (side: number): number => Math.max(1, Math.round(side / factor));
    const coarse = await sharp(bytes).resize(shrink(width), shrink(height), { fit: 'fill' }).png().toBuffer();
    const preview = await sharp(coarse).resize(width, height, { fit: 'fill' }).png().toBuffer();
    signal.throwIfAborted();
    await onPartial?.({ bytes: preview, contentType: 'image/png', index });
  }
}

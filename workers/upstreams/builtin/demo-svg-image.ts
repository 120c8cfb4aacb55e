import {
  UpstreamError,
  type CallContext,
  type GeneratedImage,
  type ImageAnswer,
  type ImageCall,
} from '../upstream.ts';
import { composePicture } from './picture/compose-picture.ts';
import { loadPictureFont, type PictureFont } from './picture/picture-font.ts';

/** What `size` may be; the pixels of a side are its first number. */
export const DEMO_IMAGE_SIZES = ['256x256', '512x512', '1024x1024'] as const;
export const DEMO_IMAGE_MAX_COUNT = 4;

let font: PictureFont | undefined;

/** Draws a call's prompt as `n` posters, each another one; the same call gives the same pictures. */
export async function drawDemoImages(call: ImageCall, { signal }: CallContext): Promise<ImageAnswer> {
  signal.throwIfAborted();
  if (!DEMO_IMAGE_SIZES.some((size) => size === call.size)) {
    throw new UpstreamError('rejected', `size must be one of ${DEMO_IMAGE_SIZES.join(', ')}`);
  }
  if (!Number.isInteger(call.n) || call.n < 1 || call.n > DEMO_IMAGE_MAX_COUNT) {
    throw new UpstreamError('rejected', `n must be from 1 to ${DEMO_IMAGE_MAX_COUNT}`);
  }
  const { default: sharp } = await import('sharp');
  // One thread a picture, and no cache of what is never drawn twice, keep the memory small.
  sharp.concurrency(1);
  sharp.cache(false);
  font ??= loadPictureFont();

  const images: GeneratedImage[] = [];
  for (let index = 0; index < call.n; index++) {
    signal.throwIfAborted();
    const svg = composePicture({ ...call, index, size: Number.parseInt(call.size, 10) }, font);
    const bytes = await sharp(Buffer.from(svg)).removeAlpha().png({ compressionLevel: 7 }).toBuffer();
    images.push({ bytes, contentType: 'image/png', revisedPrompt: null });
  }
  signal.throwIfAborted();
  return { images, calls: 1, usage: null };
}

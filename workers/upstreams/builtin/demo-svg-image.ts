import type { CallContext, GeneratedImage, ImageResponse, ImageCall } from '../upstream.ts';
import { UpstreamError } from '../upstream.ts';
import { checkDemoCount, readDemoSize } from './demo-sizes.ts';
import { loadSharp } from './edit/raster.ts';
import { composePoster } from './poster/compose-poster.ts';
import { getPosterFont } from './poster/poster-font.ts';
import { sendPreviews } from './send-previews.ts';

const defaultSide = 1_024;

/** Draws a call's prompt as `n` different posters. The same call always returns the same images. */
export async function drawDemoImages(call: ImageCall, context: CallContext): Promise<ImageResponse> {
  const { signal } = context;
  signal.throwIfAborted();
  if (call.inputs.length > 0) {
    const message = 'demo-svg-image generates images from text only: omit image_url, or use demo-image-edit.';
    throw new UpstreamError('rejected', message);
  }
  const side = readDemoSize(call.size)?.width ?? defaultSide;
  checkDemoCount(call.n);
  const sharp = await loadSharp();
  const font = getPosterFont();

  const images: GeneratedImage[] = [];
  for (let index = 0; index < call.n; index++) {
    signal.throwIfAborted();
    const svg = composePoster({ ...call, index, size: side }, font);
    const bytes = await sharp(Buffer.from(svg)).removeAlpha().png({ compressionLevel: 7 }).toBuffer();
    images.push({ bytes, contentType: 'image/png', revisedPrompt: null });
  }
  signal.throwIfAborted();
  await sendPreviews(images[0]!.bytes, call, context);
  return { images, calls: 1, usage: null };
}

import type { ImageOptions } from '../../../shared/queue/job-kinds.ts';
import {
  UpstreamError,
  type CallContext,
  type GeneratedImage,
  type ImageAnswer,
  type ImageCall,
} from '../upstream.ts';
import { checkDemoCount, readDemoSize } from './demo-sizes.ts';
import { applyEdits } from './edit/apply-edits.ts';
import { parseEdits, type ImageEdit } from './edit/parse-edits.ts';
import { clear, openRaster, type Raster, toRaster } from './edit/raster.ts';
import { applyMask, readInputs } from './edit/read-inputs.ts';
import { getPictureFont } from './picture/picture-font.ts';
import { sendPreviews } from './send-previews.ts';

/**
 * Edits a call's images as its prompt says: resize, rotate, grayscale, blur and caption, in the order of the prompt, which
 * is the caption itself where it names none of them. Several images are put side by side first. With a mask only its
 * transparent part changes. Of several variants each after the first is a little flatter.
 */
export async function editDemoImages(call: ImageCall, context: CallContext): Promise<ImageAnswer> {
  const { signal } = context;
  signal.throwIfAborted();
  if (call.inputs.length === 0) {
    const message = 'demo-image-edit edits images: send at least one as image_url, or ask demo-svg-image.';
    throw new UpstreamError('rejected', message);
  }
  const size = readDemoSize(call.size);
  checkDemoCount(call.n);
  const named = parseEdits(call.prompt);
  const edits: ImageEdit[] = named.length > 0 ? named : [{ kind: 'caption', text: call.prompt }];
  const source = await readInputs(call.inputs);
  const edited = await applyEdits(source.image, edits, getPictureFont(), signal);
  const isResized = edits.some(({ kind }) => kind === 'resize' || kind === 'scale');

  const images: GeneratedImage[] = [];
  for (let index = 0; index < call.n; index++) {
    signal.throwIfAborted();
    const variant = await flatten(edited, index);
    const masked = call.mask === null ? variant : await applyMask(source, variant, call.mask);
    const sized = size === null ? masked : await fitInto(masked, size, !isResized);
    images.push(await encode(sized, call.options));
  }
  signal.throwIfAborted();
  await sendPreviews(images[0]!.bytes, call, context);
  return { images, calls: 1, usage: null };
}

async function flatten(image: Raster, index: number): Promise<Raster> {
  if (index === 0) return image;
  const lost = 0.08 * index;
  const [gain, offset] = [1 - lost, 128 * lost];
  // The alpha stays as it is.
  const [gains, offsets] = [
    [gain, gain, gain, 1],
    [offset, offset, offset, 0],
  ];
  return await toRaster((await openRaster(image)).linear(gains, offsets));
}

/** The whole image in the middle of one of this size. One that the prompt has resized is not made larger again. */
async function fitInto(
  image: Raster,
  size: { width: number; height: number },
  enlarges: boolean,
): Promise<Raster> {
  const { width, height } = size;
  const inner = await toRaster(
    (await openRaster(image)).resize(width, height, { fit: 'inside', withoutEnlargement: !enlarges }),
  );
  const left = Math.floor((width - inner.width) / 2);
  const top = Math.floor((height - inner.height) / 2);
  const right = width - inner.width - left;
  const bottom = height - inner.height - top;
  return await toRaster((await openRaster(inner)).extend({ left, top, right, bottom, background: clear }));
}

async function encode(
  image: Raster,
  { outputFormat, outputCompression }: ImageOptions,
): Promise<GeneratedImage> {
  const opened = await openRaster(image);
  const format = outputFormat ?? 'png';
  const quality = outputCompression === null ? {} : { quality: Math.max(1, outputCompression) };
  const encoded =
    format === 'jpeg'
      ? opened.flatten({ background: '#fff' }).jpeg(quality)
      : format === 'webp'
        ? opened.webp(quality)
        : opened.png();
  return { bytes: await encoded.toBuffer(), contentType: `image/${format}`, revisedPrompt: null };
}

import { AppError } from '../../../shared/contract/errors.ts';
import { FairBudget } from '../../../shared/fairness/fair-budget.ts';
import type { ImageOptions } from '../../../shared/work/queue/job-kinds.ts';
import {
  UpstreamError,
  type CallContext,
  type GeneratedImage,
  type ImageResponse,
  type ImageCall,
} from '../upstream.ts';
import { checkDemoCount, type DemoSize, readDemoSize } from './demo-sizes.ts';
import { applyEdits } from './edit/apply-edits.ts';
import { parseEdits, type ImageEdit } from './edit/parse-edits.ts';
import { transparent, openRaster, type Raster, toRaster } from './edit/raster.ts';
import { applyMask, readInputs } from './edit/read-edit-inputs.ts';
import { getPosterFont } from './poster/poster-font.ts';
import { sendPreviews } from './send-previews.ts';

/** An edit takes about 100 MB for pixels, and small machines have two cores. */
const maxConcurrentEdits = 2;
/** Each edit ahead in the queue finishes within seconds. */
const maxWaitMs = 120_000;

/** Creates the image editor of one process, in which accounts take turns. */
export function createImageEditor(): (call: ImageCall, context: CallContext) => Promise<ImageResponse> {
  const slots = new FairBudget({ capacity: maxConcurrentEdits, maxWaitingPerHolder: Infinity });
  const createError = (): AppError => new AppError('deadline_exceeded');
  return async (call, context) => {
    checkCall(call);
    const { accountId, signal } = context;
    const slot = await slots.acquire(accountId, 1, { signal, waitMs: maxWaitMs, createError });
    let images: GeneratedImage[];
    try {
      images = await editImages(call, signal);
    } finally {
      // Release the slot before previews are sent, so that a caller that reads slowly does not delay others.
      slot.release();
    }
    await sendPreviews(images[0]!.bytes, call, context);
    return { images, calls: 1, usage: null };
  };
}

/** @throws UpstreamError `rejected` */
function checkCall({ inputs, n, size }: ImageCall): void {
  if (inputs.length === 0) {
    const message = 'demo-image-edit edits images: send at least one in image_url, or use demo-svg-image.';
    throw new UpstreamError('rejected', message);
  }
  readDemoSize(size);
  checkDemoCount(n);
}

/**
 * Edits a call's images according to its prompt: resize, rotate, grayscale, blur and caption, in the order of the
 * prompt. If the prompt contains none of these, it is used as a caption. Several images are first joined side by
 * side. With a mask, only its transparent part changes. With several variants, each one has a little less contrast
 * than the previous.
 */
async function editImages(call: ImageCall, signal: AbortSignal): Promise<GeneratedImage[]> {
  const parsedEdits = parseEdits(call.prompt);
  const edits: ImageEdit[] = parsedEdits.length > 0 ? parsedEdits : [{ kind: 'caption', text: call.prompt }];
  const source = await readInputs(call.inputs);
  const edited = await applyEdits(source.image, edits, getPosterFont(), signal);
  // The catalog's default size must not undo a resize in the prompt.
  const isResized = edits.some(({ kind }) => kind === 'resize' || kind === 'scale');
  const size = isResized && !call.isSizeRequested ? null : readDemoSize(call.size);

  const images: GeneratedImage[] = [];
  for (let index = 0; index < call.n; index++) {
    signal.throwIfAborted();
    const variant = await reduceContrast(edited, index);
    const masked = call.mask === null ? variant : await applyMask(source, variant, call.mask);
    images.push(await encode(size === null ? masked : await fitInto(masked, size), call.options));
  }
  signal.throwIfAborted();
  return images;
}

async function reduceContrast(image: Raster, index: number): Promise<Raster> {
  if (index === 0) return image;
  const contrastLoss = 0.08 * index;
  const [gain, offset] = [1 - contrastLoss, 128 * contrastLoss];
  // Alpha is unchanged.
  const [gains, offsets] = [
    [gain, gain, gain, 1],
    [offset, offset, offset, 0],
  ];
  return await toRaster((await openRaster(image)).linear(gains, offsets));
}

/** Scales the whole image to fit this size, centred. */
async function fitInto(image: Raster, { width, height }: DemoSize): Promise<Raster> {
  const sharpImage = await openRaster(image);
  return await toRaster(sharpImage.resize(width, height, { fit: 'contain', background: transparent }));
}

async function encode(
  image: Raster,
  { outputFormat, outputCompression }: ImageOptions,
): Promise<GeneratedImage> {
  const sharpImage = await openRaster(image);
  const format = outputFormat ?? 'png';
  const quality = outputCompression === null ? {} : { quality: Math.max(1, outputCompression) };
  const encoded =
    format === 'jpeg'
      ? sharpImage.flatten({ background: '#fff' }).jpeg(quality)
      : format === 'webp'
        ? sharpImage.webp(quality)
        : sharpImage.png();
  return { bytes: await encoded.toBuffer(), contentType: `image/${format}`, revisedPrompt: null };
}

/**
 * Entry point of the process that decodes and encodes images. If an image takes too much time or memory, or crashes the
 * decoder, only this process ends.
 */
import type sharp from 'sharp';
import { serveRequests } from '../../shared/platform/child-processes/serve-requests.ts';
import { maxPixels } from './image-limits.ts';
import type { EncodedImage, ImageReply, ImageWork, ReencodeWork, WorkResult } from './image-work.ts';

type Sharp = typeof sharp;

/**
 * Some cameras write JPEGs that cause decoder warnings although every program can display them. So only truncated or
 * unreadable images are rejected. Colour profiles are ignored, because they are a kind of program.
 */
const decodeOptions = { failOn: 'error', ignoreIcc: true, limitInputPixels: maxPixels } as const;
/**
 * JPEGs of this quality or higher keep full colour resolution. At lower qualities, it would make them larger than those
 * of other programs.
 */
const minFullColourQuality = 90;
/** Images with more pixels are encoded with less effort: they take a second or more even so. */
const maxFullEffortPixels = 8_000_000;

await serveRequests(async () => {
  const { default: sharp } = await import('sharp');
  sharp.concurrency(1);
  sharp.cache(false);
  return async (work: ImageWork): Promise<ImageReply> => {
    const result = await perform(sharp, work);
    return { result, rssBytes: process.memoryUsage.rss() };
  };
});

async function perform(sharp: Sharp, work: ImageWork): Promise<WorkResult | 'undecodable'> {
  try {
    const { format, width, height } = await sharp(work.bytes, decodeOptions).metadata();
    // The decoder must not take the file for anything else than its limits were checked for.
    if (`image/${format}` !== work.type) return 'undecodable';
    if (work.kind === 'reencode') return await reencode(sharp, work, width * height);
    await decodeAll(sharp, work.bytes);
    return null;
  } catch {
    // The decoder's message does not help a caller.
    return 'undecodable';
  }
}

/** Outputs a single pixel per frame but decodes all of it: `fill` does not crop, so every row is decoded. */
async function decodeAll(sharp: Sharp, bytes: Buffer): Promise<void> {
  await sharp(bytes, { ...decodeOptions, pages: -1 })
    .resize(1, 1, { fit: 'fill' })
    .raw()
    .toBuffer();
}

async function reencode(
  sharp: Sharp,
  { bytes, format, quality }: ReencodeWork,
  pixels: number,
): Promise<EncodedImage> {
  const image = sharp(bytes, decodeOptions).autoOrient();
  const isLarge = pixels > maxFullEffortPixels;
  if (format === 'png') image.png(isLarge ? { compressionLevel: 3 } : { adaptiveFiltering: true });
  // With an effort below 2, libwebp fails on large images with much detail.
  else if (format === 'webp') image.webp({ quality, ...(isLarge && { effort: 2 }) });
  else {
    const chromaSubsampling = quality < minFullColourQuality ? '4:2:0' : '4:4:4';
    // JPEG has no transparency; without a background, transparent areas would turn black.
    image.flatten({ background: 'white' }).jpeg({ quality, chromaSubsampling });
  }
  const { data, info } = await image.toBuffer({ resolveWithObject: true });
  const { width, height, channels } = info;
  return { bytes: data, width, height, hasAlpha: channels === 2 || channels === 4 };
}

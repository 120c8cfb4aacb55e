import { AppError } from '../../shared/contract/errors.ts';
import { FairBudget } from '../../shared/fairness/fair-budget.ts';

/** Of one picture; an animation's frames count together. */
const maxPixels = 50_000_000;
/** Each frame costs more than its pixels: a file of a few megabytes can hold a million of one pixel. */
const maxFrames = 1_000;
/** A decoder that is at it for so long is being led by the nose. */
const maxDecodeSeconds = 10;
/** An interlaced picture of the most pixels takes 400 MB for a second; there are two cores on a small machine. */
const maxDecodes = 2;
/** Decodes ahead of a waiting picture end within seconds. */
const maxWaitMs = 60_000;

export interface CheckedImage {
  readonly mediaType: 'image/png' | 'image/jpeg' | 'image/webp' | 'image/gif';
  /** In all frames. */
  readonly pixels: number;
}

/** What is wrong with bytes that should be a picture, to be read after "a picture". */
export interface ImageFault {
  readonly fault: string;
}

/**
 * Accounts take turns, and one alone never has all the decoders. Rejects with the signal's reason, or with AppError
 * `deadline_exceeded` where no decoder is free in time.
 */
export type CheckImage = (
  bytes: Buffer,
  accountId: string,
  signal: AbortSignal,
) => Promise<CheckedImage | ImageFault>;

/**
 * One process's check of strangers' pictures: that they are PNG, JPEG, WebP or GIF, of a bearable size, and can be
 * decoded to the last pixel; of an animated GIF that is cut off, the frames that are there. Bytes after the end of a
 * picture do no harm to who knows it for a picture, and stay.
 */
export function createImageChecker(): CheckImage {
  const decoders = new FairBudget({ capacity: maxDecodes });
  const refuse = (): AppError => new AppError('deadline_exceeded');
  return async (bytes, accountId, signal) => {
    const mediaType = sniffMediaType(bytes);
    if (mediaType === null) return { fault: 'is not a PNG, JPEG, WebP or GIF' };
    const decoder = await decoders.acquire(accountId, 1, { signal, waitMs: maxWaitMs, refuse });
    try {
      return await decode(bytes, mediaType);
    } finally {
      decoder.release();
    }
  };
}

/** The first bytes decide which decoder may see a picture at all: none of SVG, PDF or the like ever does. */
function sniffMediaType(bytes: Buffer): CheckedImage['mediaType'] | null {
  const start = bytes.toString('latin1', 0, 12);
  if (start.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (start.startsWith('RIFF') && start.startsWith('WEBP', 8)) return 'image/webp';
  if (start.startsWith('GIF87a') || start.startsWith('GIF89a')) return 'image/gif';
  return null;
}

async function decode(
  bytes: Buffer,
  mediaType: CheckedImage['mediaType'],
): Promise<CheckedImage | ImageFault> {
  const { default: sharp } = await import('sharp');
  sharp.concurrency(1);
  sharp.cache(false);
  // Cameras write JPEGs that make the decoder warn and that everybody shows: only what ends too early, or cannot be
  // read at all, is refused. Colour profiles are left alone, for they are programs of a kind.
  const options = { failOn: 'error', ignoreIcc: true } as const;
  try {
    // Reads no further than the head, whatever number of pixels that promises.
    const {
      format,
      width,
      height,
      pages = 1,
    } = await sharp(bytes, { ...options, limitInputPixels: false }).metadata();
    if (`image/${format}` !== mediaType) return { fault: 'is not of the format that its first bytes name' };
    const pixels = width * height * pages;
    if (pixels > maxPixels) return { fault: `has more than ${maxPixels / 1e6} million pixels` };
    if (pages > maxFrames) return { fault: `has more than ${maxFrames} frames` };
    // A single pixel of each frame is wanted, but of all of it: `fill` crops nothing, so no row is left undecoded.
    await sharp(bytes, { ...options, limitInputPixels: maxPixels, pages: -1 })
      .resize(1, 1, { fit: 'fill' })
      .timeout({ seconds: maxDecodeSeconds })
      .raw()
      .toBuffer();
    return { mediaType, pixels };
  } catch {
    // Whatever the decoder's words are, they speak of its insides; to a caller they all mean this.
    return { fault: 'cannot be decoded: it is damaged or cut off' };
  }
}

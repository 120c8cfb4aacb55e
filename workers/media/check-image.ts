import { sniffImageType, type ImageType } from '../../shared/contract/image-type.ts';
import {
  decodeOptions,
  Decoders,
  inspectHead,
  maxDecodeSeconds,
  maxPixels,
  undecodable,
  unknownImageType,
  type ImageFault,
  type Sharp,
} from './decoders.ts';

/** How long to wait for a decoder. Decodes ahead in the queue end within seconds. */
const maxWaitMs = 60_000;

export interface CheckedImage {
  readonly mediaType: ImageType;
  /** Over all frames. */
  readonly pixels: number;
}

/** Rejects with the signal's reason, or with AppError `deadline_exceeded` if no decoder is free in time. */
export type CheckImage = (
  bytes: Buffer,
  accountId: string,
  signal: AbortSignal,
) => Promise<CheckedImage | ImageFault>;

/**
 * Creates the check for untrusted images: they must be PNG, JPEG, WebP or GIF, of a reasonable size, and fully
 * decodable. A truncated animated GIF passes with the frames it has. Bytes after the end of an image are kept;
 * they cannot harm a reader that treats the file as an image.
 */
export function createImageChecker(decoders = new Decoders()): CheckImage {
  return async (bytes, accountId, signal) => {
    // The first bytes decide whether a decoder sees the file at all, so SVG, PDF and the like never reach one.
    const mediaType = sniffImageType(bytes);
    if (mediaType === null) return unknownImageType;
    return await decoders.use({ accountId, signal, waitMs: maxWaitMs }, (sharp) =>
      decode(sharp, bytes, mediaType),
    );
  };
}

async function decode(sharp: Sharp, bytes: Buffer, mediaType: ImageType): Promise<CheckedImage | ImageFault> {
  try {
    const head = await inspectHead(sharp, bytes, { format: mediaType, countsFrames: true });
    if ('fault' in head) return head;
    // Needs only a single pixel of each frame, but must decode all of it: `fill` crops nothing, so every row is
    // decoded.
    await sharp(bytes, { ...decodeOptions, limitInputPixels: maxPixels, pages: -1 })
      .resize(1, 1, { fit: 'fill' })
      .timeout({ seconds: maxDecodeSeconds })
      .raw()
      .toBuffer();
    return { mediaType, pixels: head.pixels };
  } catch {
    // The decoder's message does not help a caller.
    return undecodable;
  }
}
